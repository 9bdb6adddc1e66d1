import { Typography } from '@strapi/design-system';
import type { Connection } from '../../../../shared/contracts/pos';
import { CodeBlock } from '../../components/code-block';
import { ShownOnce } from '../../components/shown-once';
import { useAccess } from '../../permissions';
import { useLevels } from '../../services/stock';
import { pingCommand, testSaleCommand } from '../../utils/curl';
import { useText } from '../../utils/text';

declare global {
  interface Window {
    strapi: { backendURL?: string };
  }
}

export const posBase = (): string =>
  `${(window.strapi.backendURL ?? window.location.origin).replace(/\/$/, '')}/api/service-pos/v1`;

interface CredentialsProps {
  connection: Pick<Connection, 'name' | 'key' | 'locations' | 'mode' | 'scopes'>;
  secret: string;
  onDone(): void;
}

/** Key and secret, shown once, with commands that prove that they work. */
export const Credentials = ({ connection, secret, onDone }: CredentialsProps) => {
  const text = useText();
  const { can } = useAccess();
  const { name, key, locations, mode, scopes } = connection;
  // A sale is no test where it empties a shelf.
  const offersSale = mode === 'test' && scopes.includes('sale:write');
  const levels = useLevels({ perPage: 1 }, { skip: !offersSale || !can('stock.read') });
  const sku = levels.data?.data[0]?.sku ?? 'SKU-1';
  return (
    <ShownOnce
      title={text('connection.credentials', { name })}
      values={[
        { label: text('connection.key'), value: key },
        { label: text('connection.secret'), value: secret },
      ]}
      onDone={onDone}
    >
      <Typography textColor="neutral600">
        {`${text('connection.mode')}: ${text(`connection.mode.${mode}`)}`}
      </Typography>
      <CodeBlock
        title={text('connection.ping')}
        code={pingCommand(posBase(), key)}
        copyLabel={text('copy.command')}
      />
      {offersSale && (
        <CodeBlock
          title={text('connection.testSale')}
          code={testSaleCommand(posBase(), { key, secret, sku, locationRef: locations[0]?.ref })}
          copyLabel={text('copy.command')}
        />
      )}
      {mode === 'live' && (
        <Typography textColor="neutral600">{text('connection.testSale.live')}</Typography>
      )}
    </ShownOnce>
  );
};
