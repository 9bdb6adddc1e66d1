import type { Level } from '../../../../shared/contracts/stock';
import type { ChosenItem } from '../../utils/chosen-item';
import type { Problems } from '../../utils/errors';
import { isWhole } from '../../utils/whole';

/** Lines of a count or a transfer while they are entered. */

export interface Line {
  item: ChosenItem;
  /** As typed; a line that is left empty is not sent. */
  quantity: string;
}

export const filledLines = (lines: readonly Line[]): Line[] =>
  lines.filter(({ quantity }) => quantity.trim() !== '');

export const sentLines = (lines: readonly Line[]): { item: number; quantity: number }[] =>
  filledLines(lines).map(({ item, quantity }) => ({ item: item.id, quantity: Number(quantity) }));

/** Without those that are there already. */
export const withItems = (lines: readonly Line[], items: readonly ChosenItem[]): Line[] => {
  const known = new Set(lines.map(({ item }) => item.id));
  const added = items.filter(({ id }) => !known.has(id));
  return [...lines, ...added.map((item) => ({ item, quantity: '' }))];
};

export const itemOfLevel = ({ item_id: id, sku, name }: Level): ChosenItem => ({ id, sku, name });

export const isQuantity = (text: string, least: number): boolean =>
  isWhole(text) && Number(text) >= least;

/**
 * The problem of each line, by its place in the form.
 * @param field  as the server calls the list; it counts the lines that were sent
 */
export const lineProblems = (
  lines: readonly Line[],
  field: 'counts' | 'lines',
  problems: Problems
): (string | undefined)[] => {
  let sent = -1;
  return lines.map(({ quantity }) => {
    if (quantity.trim() === '') return undefined;
    sent += 1;
    return (
      problems[`${field}.${sent}.item`] ??
      problems[`${field}.${sent}.quantity`] ??
      problems[`${field}.${sent}`]
    );
  });
};

/** Problems found without the server, by the server's names of fields. */
export const quantityProblems = (
  lines: readonly Line[],
  field: 'counts' | 'lines',
  least: number,
  message: string
): Problems =>
  Object.fromEntries(
    filledLines(lines).flatMap(({ quantity }, index) =>
      isQuantity(quantity, least) ? [] : [[`${field}.${index}.quantity`, message]]
    )
  ) as Problems;
