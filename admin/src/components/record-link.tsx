import { Typography } from '@strapi/design-system';
import type { Subject } from '../../../shared/contracts/webhooks';
import { useRecordTypes } from '../services/settings';
import { RowLink } from './row-link';

/** The record that an event is about, with the name it had then; leads to it where the site has its type. */
export const RecordLink = ({ subject }: { subject: Subject | null }) => {
  const types = useRecordTypes();
  if (!subject) return <Typography textColor="neutral600">–</Typography>;
  const uid = types.data?.[subject.type];
  if (!uid) return <Typography textColor="neutral800">{subject.label}</Typography>;
  const address = `/content-manager/collection-types/${uid}/${encodeURIComponent(subject.id)}`;
  return <RowLink to={address}>{subject.label}</RowLink>;
};
