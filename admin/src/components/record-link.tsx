import { Typography } from '@strapi/design-system';
import type { Subject } from '../../../shared/contracts/webhooks';
import { useRecordTypes } from '../services/settings';
import { RowLink } from './row-link';

/** Records of the plugin's own, by the pages that show them. */
const PAGES: Readonly<Record<string, string>> = {
  item: 'stock/items',
  till: 'tills',
  till_record: 'records',
};

/** The record that an event is about, with the name it had then; leads to it if the site has its type. */
export const RecordLink = ({ subject }: { subject: Subject | null }) => {
  const types = useRecordTypes();
  if (!subject) return <Typography textColor="neutral600">–</Typography>;
  const { type, id, label } = subject;
  const page = PAGES[type];
  const uid = types.data?.[type];
  if (!page && !uid) return <Typography textColor="neutral800">{label}</Typography>;
  const address = page
    ? `/plugins/switchboard/${page}`
    : `/content-manager/collection-types/${uid}`;
  return <RowLink to={`${address}/${encodeURIComponent(id)}`}>{label}</RowLink>;
};
