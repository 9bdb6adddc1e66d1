import { Button } from '@strapi/design-system';
import { Download } from '@strapi/icons';
import { useQueryParams } from '@strapi/strapi/admin';
import { useExport } from '../panels/contact-actions';
import { useText } from '../utils/text';

/** Exports every contact that the list's filters and search find. */
const ExportButton = () => {
  const text = useText();
  const [{ query }] = useQueryParams<{ filters?: unknown; _q?: string }>();
  const { run, isLoading } = useExport();
  return (
    <Button
      variant="tertiary"
      startIcon={<Download />}
      loading={isLoading}
      onClick={() => void run({ filters: query?.filters, _q: query?._q })}
    >
      {text('contacts.export')}
    </Button>
  );
};

export default ExportButton;
