import { errors, z } from '@strapi/utils';
import { parseInput, parseWithRules } from '../../../server/src/http/validation';

const schema = z.object({ events: z.array(z.string()) });

const refusalOf = async (work: () => unknown): Promise<errors.ValidationError> => {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(errors.ValidationError);
    return error as errors.ValidationError;
  }
  throw new Error('It was not refused.');
};
const faultsOf = ({ details }: errors.ValidationError) =>
  (details as { errors: { path: string[]; message: string }[] }).errors;

it.each([
  ['parseInput', (input: unknown) => parseInput(schema, input)],
  ['parseWithRules', (input: unknown) => parseWithRules(schema, input, {})],
])('%s refuses a list that is far too long without judging its entries', async (_name, parse) => {
  const judged = jest.spyOn(schema, 'safeParse');
  const refused = await refusalOf(() =>
    parse({ events: Array.from({ length: 300_000 }, () => 1) })
  );
  expect(faultsOf(refused)).toMatchObject([
    { path: ['events'], message: 'must have at most 5000 entries' },
  ]);
  expect(judged).not.toHaveBeenCalled();
  judged.mockRestore();
});

it('names the first of many wrong entries', async () => {
  const input = { events: Array.from({ length: 5000 }, () => 1) };
  const refused = await refusalOf(() => parseInput(schema, input));
  expect(faultsOf(refused)).toHaveLength(20);
  expect(refused.message.length).toBeLessThan(2000);
});
