import { useQueryParams } from '@strapi/strapi/admin';
import { Filter } from '../../components/filter';
import { useAccess } from '../../permissions';
import { useConnections } from '../../services/pos';
import { type ListQuery, useNarrow } from './list-query';

/** One till of the log, for users who may see tills. */
export const TillFilter = () => {
  const { can } = useAccess();
  const [{ query }] = useQueryParams<ListQuery>();
  const narrow = useNarrow();
  const { data: connections = [] } = useConnections(undefined, { skip: !can('connections.read') });
  if (connections.length === 0) return null;
  return (
    <Filter
      label="event.filter.connection"
      value={query.connection}
      options={connections.map(({ id, name }) => [String(id), name])}
      onChange={narrow('connection')}
    />
  );
};
