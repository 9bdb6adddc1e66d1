import { SingleSelect, SingleSelectOption, Typography } from '@strapi/design-system';
import type { FileKind } from '../../../../shared/contracts/imports';
import { type Column, DataTable } from '../../components/data-table';
import { useAccess } from '../../permissions';
import { useLocations } from '../../services/stock';
import { keyFor, useText } from '../../utils/text';
import { choicesOf, problemsOf } from './columns';

interface ColumnTableProps {
  kind: FileKind;
  headings: readonly string[];
  /** The first row of the file. */
  sample: readonly string[];
  names: readonly (string | null)[];
  onChange(names: (string | null)[]): void;
}

const LEFT_OUT = 'leave-out';

interface Row {
  heading: string;
  index: number;
}

/** Lets the user assign each column of the file; a column may be left out. */
export const ColumnTable = ({ kind, headings, sample, names, onChange }: ColumnTableProps) => {
  const text = useText();
  const { can } = useAccess();
  const { data: locations = [] } = useLocations(undefined, { skip: !can('stock.read') });
  const codes = locations.map(({ code }) => code);
  const problems = problemsOf(kind, names);
  const labelOf = (choice: string): string => {
    const key = keyFor('import.column', choice);
    return key ? `${text(key)} (${choice})` : choice;
  };
  const columns: Column<Row>[] = [
    {
      id: 'heading',
      label: text('import.heading'),
      cell: ({ heading }) => <Typography fontWeight="bold">{heading || '–'}</Typography>,
    },
    {
      id: 'sample',
      label: text('import.sample'),
      cell: ({ index }) => sample[index] || '–',
    },
    {
      id: 'is',
      label: text('import.is'),
      cell: ({ heading, index }) => (
        <SingleSelect
          aria-label={text('import.is.of', { heading })}
          value={names[index] ?? LEFT_OUT}
          onChange={(chosen) =>
            onChange(
              names.map((name, at) => {
                if (at !== index) return name;
                return chosen === LEFT_OUT ? null : String(chosen);
              })
            )
          }
        >
          <SingleSelectOption value={LEFT_OUT}>{text('import.leaveOut')}</SingleSelectOption>
          {choicesOf(kind, heading, codes).map((choice) => (
            <SingleSelectOption key={choice} value={choice}>
              {labelOf(choice)}
            </SingleSelectOption>
          ))}
        </SingleSelect>
      ),
    },
  ];
  return (
    <>
      <DataTable
        label={text('import.columns')}
        columns={columns}
        rows={headings.map((heading, index) => ({ heading, index }))}
        rowId={({ index }) => index}
        empty={{ text: text('import.empty') }}
      />
      {problems.required && (
        <Typography role="alert" textColor="danger600">
          {text('import.required', { column: labelOf(problems.required) })}
        </Typography>
      )}
      {problems.twice && (
        <Typography role="alert" textColor="danger600">
          {text('import.twice', { column: labelOf(problems.twice) })}
        </Typography>
      )}
    </>
  );
};
