import { Typography } from '@strapi/design-system';
import { Layouts, Page } from '@strapi/strapi/admin';
import type { MappedType } from '../../../../shared/contracts/overview';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { permissionsFor } from '../../permissions';
import { useMappedTypes } from '../../services/settings';
import { useText } from '../../utils/text';

const Mappings = () => {
  const text = useText();
  const types = useMappedTypes();
  const columns: Column<MappedType>[] = [
    {
      id: 'purpose',
      label: text('mappings.purpose'),
      cell: (row) => text(`mappings.${row.purpose}`),
    },
    { id: 'label', label: text('mappings.label'), cell: (row) => row.label },
    {
      id: 'type',
      label: text('mappings.type'),
      cell: (row) => <Typography fontWeight="bold">{row.content_type}</Typography>,
    },
    {
      id: 'fields',
      label: text('mappings.fields'),
      cell: ({ fields }) => (
        <Typography style={{ whiteSpace: 'normal' }}>
          {fields
            .map(({ name, attribute }) => `${name} ← ${attribute ?? text('mappings.computed')}`)
            .join(', ')}
        </Typography>
      ),
    },
  ];
  return (
    <Page.Main>
      <Page.Title>{text('settings.mappings')}</Page.Title>
      <Layouts.Header title={text('settings.mappings')} subtitle={text('mappings.subtitle')} />
      <Layouts.Content>
        <Loaded query={types}>
          {(rows) => (
            <DataTable
              label={text('settings.mappings')}
              columns={columns}
              rows={rows}
              rowId={({ purpose, label, content_type: type }) => `${purpose}-${label}-${type}`}
              empty={{ text: text('mappings.empty') }}
            />
          )}
        </Loaded>
      </Layouts.Content>
    </Page.Main>
  );
};

const MappingsPage = () => (
  <Page.Protect permissions={permissionsFor('modules.update')}>
    <Mappings />
  </Page.Protect>
);

export default MappingsPage;
