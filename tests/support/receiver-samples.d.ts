/** An entry of `examples/receivers/receivers.json`. */
export interface Sample {
  folder: string;
  framework: string;
  /** The program or tool that has to be on the machine. */
  runtime: string;
  /** A command as a list of words, run in the folder; none where there is nothing to install. */
  install: string[];
  run: string[];
  /** The path that it answers at. */
  path: string;
}

export const SAMPLES: Sample[];
export function lacks(sample: Sample): string | null;
export function install(sample: Sample): { folder: string; command: string[] };
