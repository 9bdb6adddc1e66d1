import type { CodedRefusal, RefusalCode, RefusalValues } from '../../../shared/contracts/refusals';

/** The reason of a refusal: in English for the API, and coded for clients that word it themselves. */
export interface Refusal extends CodedRefusal {
  message: string;
}

/** A refusal; as the `details` of the host's 409 or 503 it is without its message. */
export const refusal = (message: string, code: RefusalCode, values?: RefusalValues): Refusal => ({
  message,
  code,
  ...(values && { values }),
});

/** The code of a refusal, as `details` of an answer or as a part of one of `details.errors`. */
export const codeOf = ({ code, values }: CodedRefusal): CodedRefusal => ({
  code,
  ...(values && { values }),
});

/** The result of a function that refuses a request; endpoints answer it with 409 or 503. */
export class Refused {
  readonly refusal: Refusal;

  constructor(
    message: string,
    code: RefusalCode,
    values?: RefusalValues,
    readonly status: 409 | 503 = 409
  ) {
    this.refusal = refusal(message, code, values);
  }
}
