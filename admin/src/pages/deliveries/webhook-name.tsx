import { Typography } from '@strapi/design-system';
import { RowLink } from '../../components/row-link';
import { useHealth } from '../../services/webhooks';

/** A webhook by its name, which leads to it. */
export const WebhookName = ({ id }: { id: number }) => {
  const health = useHealth();
  const found = health.data?.webhooks.find((one) => one.webhook_id === id);
  if (!health.data) return <Typography>…</Typography>;
  return <RowLink to={`/plugins/switchboard/webhooks/${id}`}>{found?.name ?? `#${id}`}</RowLink>;
};
