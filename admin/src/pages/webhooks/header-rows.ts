import { HEADER_LIMITS, KEPT_VALUE } from '../../../../shared/contracts/webhooks';
import type { TextKey } from '../../utils/text';

/** A header of a webhook's own, as the form edits it. */
export interface HeaderRow {
  name: string;
  value: string;
}

type Headers = Record<string, string>;

/** The form's initial rows: values are kept, whatever they are. */
export const headersOf = (webhook: { header_names: readonly string[] }): Headers =>
  Object.fromEntries(webhook.header_names.map((name) => [name, KEPT_VALUE]));

export const rowsOf = (headers: Readonly<Headers>): HeaderRow[] =>
  Object.entries(headers).map(([name, value]) => ({ name, value }));

/** Without rows that nobody filled in. */
const filled = (rows: readonly HeaderRow[]): HeaderRow[] =>
  rows
    .map(({ name, value }) => ({ name: name.trim(), value: value.trim() }))
    .filter(({ name, value }) => name !== '' || value !== '');

export const toHeaders = (rows: readonly HeaderRow[]): Headers =>
  Object.fromEntries(filled(rows).map(({ name, value }) => [name, value]));

export interface RowProblem {
  key: TextKey;
  values?: Record<string, string | number>;
}

/** Problems that the form can find at once, and that an object cannot express; the server checks the rest. */
export const problemOf = (rows: readonly HeaderRow[]): RowProblem | undefined => {
  const said = filled(rows);
  if (said.some(({ name }) => name === '')) return { key: 'form.required' };
  const empty = said.find(({ value }) => value === '');
  if (empty) return { key: 'error.code.header_value', values: { name: empty.name } };
  if (said.length > HEADER_LIMITS.most) {
    return { key: 'error.code.too_many', values: { maximum: HEADER_LIMITS.most } };
  }
  const names = said.map(({ name }) => name.toLowerCase());
  const twice = said.find(({ name }, at) => names.indexOf(name.toLowerCase()) !== at);
  return twice && { key: 'headers.twice', values: { name: twice.name } };
};
