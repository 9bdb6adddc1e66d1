import { Flex, Typography } from '@strapi/design-system';
import { useState } from 'react';
import type { Purchase } from '../../../shared/contracts/pos';
import { useMoney } from '../components/money';
import { RowLink } from '../components/row-link';
import { Steps } from '../components/steps';
import { Time } from '../components/time';
import { useGrants } from '../permissions';
import { usePurchases } from '../services/customers';
import { usePolling } from '../utils/polling';
import { useText } from '../utils/text';

const PER_PAGE = 5;
const REFRESH_MS = 10_000;
const LOG = '/plugins/switchboard/records';

/** A purchase by the id that its till gave it, leading to it for those who may read the log. */
const PurchaseName = ({ external_id: id }: Purchase) => {
  const { can } = useGrants();
  if (!can('pos-events.read')) return <Typography fontWeight="bold">{id}</Typography>;
  return <RowLink to={`${LOG}?_q=${encodeURIComponent(id)}`}>{id}</RowLink>;
};

/** Sales and refunds of one contact, newest first; a refund takes away. */
const ContactPurchases = ({ id }: { id: string }) => {
  const text = useText();
  const money = useMoney();
  const [page, setPage] = useState(1);
  const purchases = usePurchases(
    { contact: id, page, perPage: PER_PAGE },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  if (purchases.error) {
    return <Typography textColor="neutral600">{text('error.load')}</Typography>;
  }
  if (!purchases.data) return null;
  const { data, meta } = purchases.data;
  if (data.length === 0) {
    return <Typography textColor="neutral600">{text('purchases.none')}</Typography>;
  }
  return (
    <Flex direction="column" alignItems="stretch" gap={3} width="100%">
      <Flex
        tag="ul"
        aria-label={text('purchases.title')}
        direction="column"
        alignItems="stretch"
        gap={3}
      >
        {data.map((one, index) => {
          const { kind, currency, total, occurred_at: at } = one;
          const amount = kind === 'refund' ? -total : total;
          return (
            <Flex
              tag="li"
              key={`${index} ${one.external_id}`}
              direction="column"
              alignItems="start"
              gap={1}
            >
              <PurchaseName {...one} />
              <Flex gap={2} wrap="wrap">
                <Typography>{text(`event.kind.${kind}`)}</Typography>
                <Typography fontWeight="bold">
                  {currency === null ? '–' : money(amount, currency)}
                </Typography>
                <Time at={at} variant="pi" textColor="neutral600" />
              </Flex>
            </Flex>
          );
        })}
      </Flex>
      <Steps page={page} pageCount={meta.pagination.page_count} onChange={setPage} />
    </Flex>
  );
};

export default ContactPurchases;
