import type { SentRequest } from '../../../shared/contracts/webhooks';

/** One argument of a POSIX shell, whatever is in it. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A command that repeats the request; headers that curl makes itself are left out. */
export const curlOf = ({ url, headers, body }: SentRequest): string =>
  [
    `curl -X POST ${shellQuote(url)}`,
    ...Object.entries(headers)
      .filter(([name]) => !['host', 'content-length', 'connection'].includes(name.toLowerCase()))
      .map(([name, value]) => `-H ${shellQuote(`${name}: ${value}`)}`),
    `--data-raw ${shellQuote(body)}`,
  ].join(' \\\n  ');

/** A till's ping: the key alone, no signature (docs/contract-pos.md#authentication). */
export const pingCommand = (base: string, key: string): string =>
  `curl -H ${shellQuote(`X-POS-Key: ${key}`)} ${shellQuote(`${base}/ping`)}`;

/** A shell script that signs a sale of one piece at the moment it runs, and sends it. */
export const testSaleCommand = (
  base: string,
  {
    key,
    secret,
    sku,
    locationRef,
  }: { key: string; secret: string; sku: string; locationRef?: string }
): string => {
  const location = locationRef ? `,"location_ref":${JSON.stringify(locationRef)}` : '';
  const after = `,"currency":"EUR","total":100${location},"line_items":[{"sku":${JSON.stringify(sku)},"quantity":1}]}`;
  return [
    `TS=$(date +%s)`,
    `BODY='{"external_id":"test-'"$TS"'","occurred_at":"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'"'${shellQuote(after)}`,
    `SIG=$(printf '%s\\n%s' "$TS" "$BODY" | openssl dgst -sha256 -hmac ${shellQuote(secret)} | sed 's/^.*= *//')`,
    `curl -X POST ${shellQuote(`${base}/sale`)} -H 'Content-Type: application/json' \\`,
    `  -H ${shellQuote(`X-POS-Key: ${key}`)} -H "X-POS-Timestamp: $TS" -H "X-POS-Signature: sha256=$SIG" \\`,
    `  --data-raw "$BODY"`,
  ].join('\n');
};
