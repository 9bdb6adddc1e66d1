import { BagInput, type CustomInputProps, type Part } from './bag-input';

const PARTS: readonly Part[] = [
  { name: 'street', label: 'address.street', columns: 12 },
  { name: 'postal_code', label: 'address.postalCode', columns: 4 },
  { name: 'city', label: 'address.city', columns: 8 },
  { name: 'state', label: 'address.state', columns: 6 },
  { name: 'country', label: 'address.country', columns: 6 },
];

/** The input of a postal address. */
const AddressInput = (props: CustomInputProps) => (
  <BagInput {...props} parts={PARTS} add="address.add" />
);

export default AddressInput;
