import { Flex, IconButton, Typography } from '@strapi/design-system';
import { ChevronLeft, ChevronRight } from '@strapi/icons';
import { useText } from '../utils/text';

interface StepsProps {
  page: number;
  pageCount: number;
  onChange(page: number): void;
}

/** Pages of a second list on a page, whose address belongs to the first; nothing where there is one. */
export const Steps = ({ page, pageCount, onChange }: StepsProps) => {
  const text = useText();
  if (pageCount <= 1) return null;
  return (
    <Flex justifyContent="flex-end" gap={2}>
      <IconButton
        label={text('steps.previous')}
        variant="ghost"
        disabled={page <= 1}
        onClick={() => onChange(page - 1)}
      >
        <ChevronLeft />
      </IconButton>
      <Typography>{text('steps.page', { page, count: pageCount })}</Typography>
      <IconButton
        label={text('steps.next')}
        variant="ghost"
        disabled={page >= pageCount}
        onClick={() => onChange(page + 1)}
      >
        <ChevronRight />
      </IconButton>
    </Flex>
  );
};
