import { BagInput, type CustomInputProps } from './bag-input';

/** The input of a record's custom fields. */
const ValuesInput = (props: CustomInputProps) => (
  <BagInput {...props} add="bag.add" none="bag.none" />
);

export default ValuesInput;
