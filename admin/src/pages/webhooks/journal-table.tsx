import { Button, Flex } from '@strapi/design-system';
import { useState } from 'react';
import type { Envelope } from '../../../../shared/contracts/webhooks';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useJournal } from '../../services/webhooks';
import { useText } from '../../utils/text';

const PAGE_SIZE = 10;

/** The journal as it can be read, a page after the other: there is no way back but to its beginning. */
export const JournalTable = () => {
  const text = useText();
  const [after, setAfter] = useState('');
  const journal = useJournal({ after, limit: PAGE_SIZE });
  const columns: Column<Envelope>[] = [
    { id: 'event', label: text('missed.event'), cell: ({ event }) => event },
    {
      id: 'at',
      label: text('missed.journal.at'),
      cell: ({ created_at: at }) => <Time at={at} both />,
    },
    { id: 'id', label: text('missed.journal.id'), cell: ({ id }) => id },
  ];
  return (
    <Loaded query={journal}>
      {({ data, next_cursor: next }) => (
        <Flex direction="column" alignItems="stretch" gap={2}>
          <DataTable
            label={text('missed.journal.title')}
            columns={columns}
            rows={data}
            rowId={({ id }) => id}
            empty={{ text: text('missed.journal.empty') }}
          />
          <Flex gap={2} justifyContent="end">
            {after !== '' && (
              <Button size="S" variant="tertiary" onClick={() => setAfter('')}>
                {text('missed.journal.first')}
              </Button>
            )}
            {data.length === PAGE_SIZE && (
              <Button size="S" variant="tertiary" onClick={() => setAfter(next)}>
                {text('missed.journal.later')}
              </Button>
            )}
          </Flex>
        </Flex>
      )}
    </Loaded>
  );
};
