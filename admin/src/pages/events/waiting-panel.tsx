import {
  Button,
  Field,
  Flex,
  SingleSelect,
  SingleSelectOption,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { useState } from 'react';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { Panel } from '../../components/definition-list';
import { useAccess } from '../../permissions';
import { useConnection, useUpdateConnection } from '../../services/pos';
import { useCreateItem, useLocations } from '../../services/stock';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

type Waiting = PosEventDetail['waiting'][number];

/** Creates the item that a line names; the waiting lines then apply by themselves. */
const MapItem = ({ sku, gtin }: { sku?: string; gtin?: string }) => {
  const text = useText();
  const outcome = useOutcome();
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState(sku ?? gtin ?? '');
  const [create, { isLoading }] = useCreateItem();
  return (
    <Flex gap={2} alignItems="end" wrap="wrap">
      {!sku && (
        <Field.Root name="map-sku">
          <Field.Label>{text('event.map.skuFor')}</Field.Label>
          <TextInput value={chosen} onChange={(event) => setChosen(event.currentTarget.value)} />
        </Field.Root>
      )}
      <Field.Root name="map-name">
        <Field.Label>{text('event.map.itemName')}</Field.Label>
        <TextInput value={name} onChange={(event) => setName(event.currentTarget.value)} />
      </Field.Root>
      <Button
        size="L"
        loading={isLoading}
        disabled={chosen.trim() === ''}
        onClick={() =>
          void create({
            sku: sku ?? chosen.trim(),
            ...(gtin && { gtin }),
            name: name.trim() || null,
          }).then((done) => outcome(done, 'event.map.item.done'))
        }
      >
        {text('event.map.item')}
      </Button>
    </Flex>
  );
};

/** Adds the till's name of a location to its connection's map. */
const MapLocation = ({
  connectionId,
  locationRef,
}: {
  connectionId: number;
  locationRef: string;
}) => {
  const text = useText();
  const outcome = useOutcome();
  const { data: locations = [] } = useLocations();
  const { data: connection } = useConnection(connectionId);
  const [update, { isLoading }] = useUpdateConnection();
  const [chosen, setChosen] = useState<string>();
  const location = Number(chosen ?? locations[0]?.id);
  const map = async (): Promise<void> => {
    const known = (connection?.locations ?? []).map((one) => ({
      ref: one.ref,
      location: one.location.id,
    }));
    const mapped = [...known, { ref: locationRef, location }];
    outcome(await update({ id: connectionId, locations: mapped }), 'event.map.location.done');
  };
  return (
    <Flex gap={2} alignItems="end" wrap="wrap">
      <Field.Root name="map-location">
        <Field.Label>{text('connection.location')}</Field.Label>
        <SingleSelect value={String(location)} onChange={(id) => setChosen(String(id))}>
          {locations.map(({ id, name }) => (
            <SingleSelectOption key={id} value={String(id)}>
              {name}
            </SingleSelectOption>
          ))}
        </SingleSelect>
      </Field.Root>
      <Button size="L" loading={isLoading} disabled={!connection} onClick={() => void map()}>
        {text('event.map.location')}
      </Button>
    </Flex>
  );
};

const reasonOf = ({ sku, location_ref: ref }: Waiting) => {
  if (ref !== undefined) return 'event.map.unknownLocation' as const;
  return sku !== undefined ? ('event.map.sku' as const) : ('event.map.gtin' as const);
};

/** What an event waits for, each with the way to give it right here. */
export const WaitingPanel = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const { can } = useAccess();
  const distinct = [
    ...new Map(
      event.waiting.map((one) => [JSON.stringify([one.sku, one.gtin, one.location_ref]), one])
    ).entries(),
  ];
  return (
    <Panel title={text('event.map.title')}>
      {distinct.map(([key, waiting]) => (
        <Flex key={key} direction="column" alignItems="start" gap={2}>
          <Typography textColor="warning700">
            {text(reasonOf(waiting), {
              sku: waiting.sku,
              gtin: waiting.gtin,
              ref: waiting.location_ref,
            })}
          </Typography>
          {waiting.location_ref !== undefined
            ? can('connections.manage') && (
                <MapLocation
                  connectionId={event.connection.id}
                  locationRef={waiting.location_ref}
                />
              )
            : can('stock.manage') && <MapItem sku={waiting.sku} gtin={waiting.gtin} />}
        </Flex>
      ))}
    </Panel>
  );
};
