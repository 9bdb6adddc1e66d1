import { Flex, LinkButton } from '@strapi/design-system';
import { useAuth, useQueryParams } from '@strapi/strapi/admin';
import { useEffect, useMemo } from 'react';
import { Link, useNavigate } from 'react-router-dom';
import { useText } from '../utils/text';
import { searchOf, shownView, type ViewedKind, viewsOf } from './views';

interface ListQuery {
  filters?: { $and?: unknown[] };
}

/** Links to the views of a list. A list that is opened without a filter shows the first one. */
const ListViews = ({ kind }: { kind: ViewedKind }) => {
  const text = useText();
  const navigate = useNavigate();
  const userId = useAuth('Switchboard', ({ user }) => user?.id);
  const [{ query, rawQuery }] = useQueryParams<ListQuery>();
  const views = useMemo(() => viewsOf(kind, { now: new Date(), userId }), [kind, userId]);
  const conditions = query.filters?.$and;
  const shown = shownView(views, conditions ?? []);

  useEffect(() => {
    // A remembered view may have the times of another day.
    const view = conditions ? shown : views[0];
    if (view) navigate({ search: searchOf(view, rawQuery) }, { replace: true });
    // Only when the list is opened: a filter that is removed afterwards stays removed.
  }, [views]);

  return (
    <Flex tag="nav" aria-label={text('views.label')} gap={1} wrap="wrap">
      {views.map((view) => (
        <LinkButton
          key={view.label}
          tag={Link}
          to={{ search: searchOf(view, rawQuery) }}
          size="S"
          variant={view === shown ? 'secondary' : 'tertiary'}
          aria-current={view === shown ? 'page' : undefined}
        >
          {text(view.label)}
        </LinkButton>
      ))}
    </Flex>
  );
};

export default ListViews;
