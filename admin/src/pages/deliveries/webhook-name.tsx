import { RowLink } from '../../components/row-link';

interface WebhookNameProps {
  id: number;
  /** null: the webhook is gone. */
  name: string | null;
}

/** A webhook by its name, which leads to it. */
export const WebhookName = ({ id, name }: WebhookNameProps) => (
  <RowLink to={`/plugins/switchboard/webhooks/${id}`}>{name ?? `#${id}`}</RowLink>
);
