import { Button, Flex, Grid, Typography } from '@strapi/design-system';
import { useState } from 'react';
import { EditForm } from '../../components/edit-form';
import { FormPage, InHeader } from '../../components/form-page';
import { LocationSelect } from '../../components/location-select';
import { Panel } from '../../components/panel';
import { useAccess } from '../../permissions';
import { useTransfer } from '../../services/stock-by-hand';
import { type Problems, useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { LineEditor } from './line-editor';
import { filledLines, type Line, lineProblems, quantityProblems, sentLines } from './lines';
import { TransferList } from './transfer-list';

const LIST = '/plugins/switchboard/stock';

interface TransferValues {
  from: number | null;
  to: number | null;
  lines: Line[];
}

const EMPTY: TransferValues = { from: null, to: null, lines: [] };

/** One id a form: submitting it twice moves the goods once. `crypto.randomUUID` is not there without TLS. */
const newId = (): string =>
  `by-hand-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 12)}`;

const TransferForm = ({ onDone }: { onDone(): void }) => {
  const text = useText();
  const savedOr = useSaved('byPath');
  const [transfer] = useTransfer();
  const [externalId] = useState(newId);

  const problemsOf = ({ from, to, lines }: TransferValues): Problems => ({
    ...(from === null && { from: text('form.required') }),
    ...(to === null && { to: text('form.required') }),
    ...(from !== null && from === to && { to: text('transfer.same') }),
    ...(filledLines(lines).length === 0 && { lines: text('transfer.empty') }),
    ...quantityProblems(lines, 'lines', 1, text('form.wholeFrom', { n: 1 })),
  });

  return (
    <EditForm<TransferValues>
      initial={EMPTY}
      problemsOf={problemsOf}
      onSave={async ({ from, to, lines }) => {
        const done = await transfer({
          external_id: externalId,
          from: from ?? 0,
          to: to ?? 0,
          lines: sentLines(lines),
        });
        const saved = savedOr(done, 'transfer.done');
        if (saved.saved) onDone();
        return saved;
      }}
    >
      {({ values, errors, saving, submit, set }) => (
        <Panel title={text('transfer.new')}>
          <InHeader>
            <Button loading={saving} onClick={submit}>
              {text('transfer.apply')}
            </Button>
          </InHeader>
          <Grid.Root gap={4}>
            {(['from', 'to'] as const).map((side) => (
              <Grid.Item key={side} col={6} xs={12} direction="column" alignItems="stretch">
                <LocationSelect
                  name={side}
                  label={text(`transfer.${side}`)}
                  error={errors[side]}
                  value={values[side]}
                  onChange={(location) => set(side, location)}
                />
              </Grid.Item>
            ))}
          </Grid.Root>
          <LineEditor
            label={text('transfer.lines')}
            quantityLabel={text('stock.quantity')}
            lines={values.lines}
            problems={lineProblems(values.lines, 'lines', errors)}
            onChange={(lines) => set('lines', lines)}
          />
          {errors.lines && <Typography textColor="danger600">{errors.lines}</Typography>}
        </Panel>
      )}
    </EditForm>
  );
};

const TransferPage = () => {
  const text = useText();
  const { can } = useAccess();
  const [made, setMade] = useState(0);
  return (
    <FormPage title={text('transfer.title')} subtitle={text('transfer.subtitle')} fallback={LIST}>
      <Flex direction="column" alignItems="stretch" gap={6}>
        {can('stock.manage') && <TransferForm key={made} onDone={() => setMade(made + 1)} />}
        <TransferList />
      </Flex>
    </FormPage>
  );
};

export default TransferPage;
