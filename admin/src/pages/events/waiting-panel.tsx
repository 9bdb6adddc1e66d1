import {
  Button,
  Field,
  Flex,
  SingleSelect,
  SingleSelectOption,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { Blocker, Form } from '@strapi/strapi/admin';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { Panel } from '../../components/panel';
import { RowLink } from '../../components/row-link';
import { useAccess } from '../../permissions';
import { useConnection, useUpdateConnection } from '../../services/pos';
import { useCreateItem, useLocations } from '../../services/stock';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

type Waiting = PosEventDetail['waiting'][number];

/** The answer for one line: the item to create, or the location that it means. */
interface Answer {
  sku?: string;
  name?: string;
  location?: string;
}

interface AnswerProps {
  id: string;
  value: Answer;
  onChange(value: Answer): void;
}

/** Creates the item that a line names; the waiting lines then apply by themselves. */
const MapItem = ({ id, sku, gtin, value, onChange }: AnswerProps & Waiting) => {
  const text = useText();
  const outcome = useOutcome();
  const [create, { isLoading }] = useCreateItem();
  const chosen = value.sku ?? sku ?? gtin ?? '';
  const onCreate = async (): Promise<void> => {
    const done = await create({
      sku: sku ?? chosen.trim(),
      ...(gtin && { gtin }),
      name: value.name?.trim() || null,
    });
    outcome(done, 'event.map.item.done');
    if (!('error' in done)) onChange({});
  };
  return (
    <Flex gap={2} alignItems="end" wrap="wrap">
      {!sku && (
        <Field.Root name={`map-sku-${id}`} required>
          <Field.Label>{text('event.map.skuFor')}</Field.Label>
          <TextInput
            value={chosen}
            onChange={(event) => onChange({ ...value, sku: event.currentTarget.value })}
          />
        </Field.Root>
      )}
      <Field.Root name={`map-name-${id}`}>
        <Field.Label>{text('event.map.itemName')}</Field.Label>
        <TextInput
          value={value.name ?? ''}
          onChange={(event) => onChange({ ...value, name: event.currentTarget.value })}
        />
      </Field.Root>
      <Button
        size="L"
        loading={isLoading}
        disabled={chosen.trim() === ''}
        onClick={() => void onCreate()}
      >
        {text('event.map.item')}
      </Button>
    </Flex>
  );
};

interface MapLocationProps extends AnswerProps {
  connectionId: number;
  locationRef: string;
}

/** Adds the till's name of a location to its connection's map. Nothing is chosen beforehand. */
const MapLocation = ({ id, connectionId, locationRef, value, onChange }: MapLocationProps) => {
  const text = useText();
  const outcome = useOutcome();
  const { data: locations = [] } = useLocations();
  const { data: connection } = useConnection(connectionId);
  const [update, { isLoading }] = useUpdateConnection();
  const map = async (): Promise<void> => {
    const known = (connection?.locations ?? []).map((one) => ({
      ref: one.ref,
      location: one.location.id,
    }));
    const mapped = [...known, { ref: locationRef, location: Number(value.location) }];
    const done = await update({ id: connectionId, locations: mapped });
    outcome(done, 'event.map.location.done');
    if (!('error' in done)) onChange({});
  };
  return (
    <Flex gap={2} alignItems="end" wrap="wrap">
      <Field.Root name={`map-location-${id}`} required>
        <Field.Label>{text('connection.location')}</Field.Label>
        <SingleSelect
          value={value.location ?? ''}
          placeholder={text('connection.location.choose')}
          onChange={(location) => onChange({ location: String(location) })}
        >
          {locations.map(({ id: location, name }) => (
            <SingleSelectOption key={location} value={String(location)}>
              {name}
            </SingleSelectOption>
          ))}
        </SingleSelect>
      </Field.Root>
      <Button
        size="L"
        loading={isLoading}
        disabled={!connection || !value.location}
        onClick={() => void map()}
      >
        {text('event.map.location')}
      </Button>
    </Flex>
  );
};

const reasonOf = ({ sku, location_ref: ref }: Waiting) => {
  if (ref !== undefined) return 'event.map.unknownLocation' as const;
  return sku !== undefined ? ('event.map.sku' as const) : ('event.map.gtin' as const);
};

/** A location is mapped right here as well; test mode parks nothing that the inbox could show. */
const offersInbox = ({ mode }: PosEventDetail, { location_ref: ref }: Waiting): boolean =>
  mode === 'live' && ref === undefined;

const NOTHING: { answers: Record<string, Answer> } = { answers: {} };

/** The unknown values of an event, each with the form to map it. */
export const WaitingPanel = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const { can } = useAccess();
  const distinct = [
    ...new Map(
      event.waiting.map((one) => [JSON.stringify([one.sku, one.gtin, one.location_ref]), one])
    ).entries(),
  ];
  const mayMap = (waiting: Waiting): boolean =>
    waiting.location_ref === undefined
      ? can('stock.manage')
      : can('connections.manage') && can('connections.read') && can('stock.read');
  return (
    <Panel title={text('event.map.title')}>
      <Form<typeof NOTHING> method="PUT" width="100%" initialValues={NOTHING}>
        {({ values: { answers }, onChange }) => (
          <Flex direction="column" alignItems="stretch" gap={4}>
            <Blocker />
            {distinct.map(([key, waiting], index) => {
              const { [key]: value = {}, ...others } = answers;
              const id = String(index);
              const change = (answer: Answer): void =>
                onChange(
                  'answers',
                  Object.keys(answer).length > 0 ? { ...others, [key]: answer } : others
                );
              return (
                <Flex key={key} direction="column" alignItems="start" gap={2}>
                  <Typography textColor="neutral800">
                    {text(reasonOf(waiting), {
                      sku: waiting.sku,
                      gtin: waiting.gtin,
                      ref: waiting.location_ref,
                    })}
                  </Typography>
                  {can('mapping.manage') && offersInbox(event, waiting) && (
                    <RowLink
                      to={`/plugins/switchboard/unmapped?_q=${encodeURIComponent(
                        waiting.sku ?? waiting.gtin ?? ''
                      )}`}
                    >
                      {text('event.map.inbox')}
                    </RowLink>
                  )}
                  {!mayMap(waiting) && (
                    <Typography textColor="neutral600">{text('event.map.ask')}</Typography>
                  )}
                  {mayMap(waiting) && waiting.location_ref !== undefined && (
                    <MapLocation
                      id={id}
                      connectionId={event.connection.id}
                      locationRef={waiting.location_ref}
                      value={value}
                      onChange={change}
                    />
                  )}
                  {mayMap(waiting) && waiting.location_ref === undefined && (
                    <MapItem id={id} {...waiting} value={value} onChange={change} />
                  )}
                </Flex>
              );
            })}
          </Flex>
        )}
      </Form>
    </Panel>
  );
};
