import { Button, Flex, Typography } from '@strapi/design-system';
import { useState } from 'react';
import type { Stocktake, StocktakeInput } from '../../../../shared/contracts/stock';
import { EditForm, type Editing } from '../../components/edit-form';
import { FormPage, InHeader } from '../../components/form-page';
import { LocationSelect } from '../../components/location-select';
import { Panel } from '../../components/panel';
import { TimeField } from '../../components/time-field';
import {
  useLocationLevels,
  usePreviewStocktake,
  useStockClock,
  useStocktake,
} from '../../services/stock-by-hand';
import { same } from '../../utils/changed-fields';
import { type Problems, type Saved, useOutcome, useSaved } from '../../utils/errors';
import { useRefusals } from '../../utils/refusals';
import { useText } from '../../utils/text';
import { CountPreview } from './count-preview';
import { LineEditor } from './line-editor';
import {
  filledLines,
  itemOfLevel,
  type Line,
  lineProblems,
  quantityProblems,
  sentLines,
  withItems,
} from './lines';

const LIST = '/plugins/switchboard/stock';

interface CountValues {
  location: number | null;
  /** When counting began by the server's clock, ISO 8601: what is sold from then on is taken off what is counted. */
  began: string;
  lines: Line[];
}

const EMPTY: CountValues = { location: null, began: '', lines: [] };

const inputOf = ({ location, began, lines }: CountValues): StocktakeInput => ({
  location: location ?? 0,
  occurred_at: began,
  counts: sentLines(lines),
});

/** A whole location at once; what is left empty is not counted. */
const AddAll = ({ location, onAdd }: { location: number; onAdd(lines: Line['item'][]): void }) => {
  const text = useText();
  const outcome = useOutcome();
  const [load, { isFetching }] = useLocationLevels();
  const add = async (): Promise<void> => {
    const { data, error } = await load(location);
    if (data) onAdd(data.map(itemOfLevel));
    else outcome({ error });
  };
  return (
    <Flex>
      <Button variant="tertiary" loading={isFetching} onClick={() => void add()}>
        {text('count.addAll')}
      </Button>
    </Flex>
  );
};

const Where = ({ values, errors, set }: Editing<CountValues>) => {
  const text = useText();
  const outcome = useOutcome();
  const [askClock] = useStockClock();
  const begin = async (): Promise<void> => {
    const { data, error } = await askClock();
    if (data) set('began', data.now);
    else outcome({ error });
  };
  return (
    <Panel title={text('count.where')}>
      <LocationSelect
        name="location"
        label={text('stock.location')}
        error={errors.location}
        value={values.location}
        onChange={(location) => {
          set('location', location);
          if (values.began === '') void begin();
        }}
      />
      {values.began !== '' && (
        <TimeField
          name="began"
          label={text('count.began')}
          hint={text('count.began.hint')}
          error={errors.occurred_at}
          latest={new Date()}
          value={values.began}
          onChange={(at) => at && set('began', at)}
        />
      )}
      {values.began === '' && errors.occurred_at && (
        <Typography textColor="danger600">{errors.occurred_at}</Typography>
      )}
    </Panel>
  );
};

interface Previewed {
  input: StocktakeInput;
  stocktake: Stocktake;
}

const CountForm = ({ onDone }: { onDone(stocktake: Stocktake): void }) => {
  const text = useText();
  const outcome = useOutcome();
  const { byPath } = useRefusals();
  const savedOr = useSaved('byPath');
  const [preview, { isFetching }] = usePreviewStocktake();
  const [apply] = useStocktake();
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const [refused, setRefused] = useState<Problems>({});

  const problemsOf = ({ location, began, lines }: CountValues): Problems => ({
    ...(location === null && { location: text('form.required') }),
    ...(location !== null && began === '' && { occurred_at: text('count.noClock') }),
    ...(filledLines(lines).length === 0 && { counts: text('count.empty') }),
    ...quantityProblems(lines, 'counts', 0, text('form.wholeFrom', { n: 0 })),
  });
  const onPreview = async (values: CountValues): Promise<void> => {
    const problems = problemsOf(values);
    setRefused(problems);
    if (Object.keys(problems).length > 0) return;
    const input = inputOf(values);
    const { data, error } = await preview(input);
    if (data) setPreviewed({ input, stocktake: data });
    else {
      const problems = byPath(error);
      setRefused(problems);
      if (Object.keys(problems).length === 0) outcome({ error });
    }
  };
  const isPreviewed = (values: CountValues): boolean =>
    previewed !== null && same(previewed.input, inputOf(values));
  const onSave = async (values: CountValues): Promise<Saved> => {
    if (!isPreviewed(values)) {
      // Enter in a field: what it does is shown before it is done.
      await onPreview(values);
      return { saved: false, problems: {} };
    }
    const done = await apply(inputOf(values));
    if ('data' in done && done.data) onDone(done.data);
    return savedOr(done, 'count.done');
  };

  return (
    <EditForm<CountValues> initial={EMPTY} problemsOf={problemsOf} onSave={onSave}>
      {(editing) => {
        const { values, saving, submit, set } = editing;
        const errors = { ...editing.errors, ...refused };
        const change = (lines: Line[]): void => {
          setRefused({});
          set('lines', lines);
        };
        return (
          <Flex direction="column" alignItems="stretch" gap={6}>
            <Where {...editing} errors={errors} />
            {values.location !== null && (
              <Panel title={text('count.lines')}>
                <AddAll
                  location={values.location}
                  onAdd={(items) => change(withItems(values.lines, items))}
                />
                <LineEditor
                  label={text('count.lines')}
                  quantityLabel={text('level.counted')}
                  lines={values.lines}
                  problems={lineProblems(values.lines, 'counts', errors)}
                  onChange={change}
                />
                {errors.counts && <Typography textColor="danger600">{errors.counts}</Typography>}
              </Panel>
            )}
            {previewed && isPreviewed(values) && (
              <CountPreview title={text('count.preview')} stocktake={previewed.stocktake} />
            )}
            <InHeader>
              {isPreviewed(values) ? (
                <Button loading={saving} onClick={submit}>
                  {text('count.apply')}
                </Button>
              ) : (
                <Button
                  variant="secondary"
                  loading={isFetching}
                  disabled={values.location === null}
                  onClick={() => void onPreview(values)}
                >
                  {text('action.preview')}
                </Button>
              )}
            </InHeader>
          </Flex>
        );
      }}
    </EditForm>
  );
};

const CountPage = () => {
  const text = useText();
  const [done, setDone] = useState<Stocktake | null>(null);
  return (
    <FormPage title={text('count.title')} subtitle={text('count.subtitle')} fallback={LIST}>
      <Flex direction="column" alignItems="stretch" gap={6}>
        {done && (
          <CountPreview
            title={text('count.applied', { id: done.id ?? 0, location: done.location.name })}
            stocktake={done}
          />
        )}
        <CountForm key={done?.id ?? 'first'} onDone={setDone} />
      </Flex>
    </FormPage>
  );
};

export default CountPage;
