import { type AST, RegExpParser, visitRegExpAST } from '@eslint-community/regexpp';
import { RE2JS } from 're2js';

const parser = new RegExpParser({ ecmaVersion: 2022 });

/** More repetitions than this may as well be without end. */
const FEW = 10;

const AMBIGUOUS = 'repeats a group that itself repeats or chooses';

/** Whether one piece of text may be matched by it in several ways: it repeats, or chooses. */
const isAmbiguous = (element: AST.QuantifiableElement): boolean => {
  let ambiguous = false;
  visitRegExpAST(element, {
    onQuantifierEnter: ({ min, max }) => {
      ambiguous ||= min !== max;
    },
    onGroupEnter: ({ alternatives }) => {
      ambiguous ||= alternatives.length > 1;
    },
    onCapturingGroupEnter: ({ alternatives }) => {
      ambiguous ||= alternatives.length > 1;
    },
  });
  return ambiguous;
};

const faultOf = (pattern: AST.Pattern): string | null => {
  let fault: string | null = null;
  visitRegExpAST(pattern, {
    onQuantifierEnter({ element, max }) {
      if (max > FEW && isAmbiguous(element)) fault ??= AMBIGUOUS;
    },
    onAssertionEnter({ kind }) {
      if (kind === 'lookahead' || kind === 'lookbehind') fault ??= 'looks ahead or behind';
    },
    onBackreferenceEnter: () => {
      fault ??= 'refers back to a group';
    },
  });
  return fault;
};

/**
 * Why a pattern is not taken; null where it is. Refused is what is no regular expression, and what a
 * backtracking engine may need more than linear time for by its shape.
 */
export const judgePattern = (source: string): string | null => {
  try {
    const fault = faultOf(parser.parsePattern(source, 0, source.length, { unicode: true }));
    if (fault) return fault;
    linearPattern(source);
    return null;
  } catch (error) {
    return `is no regular expression (${(error as Error).message})`;
  }
};

/**
 * A pattern that is matched in time linear to the text, whatever both are.
 * @throws Error where it is none
 */
export const linearPattern = (
  source: string
): { test(text: string): boolean; toString(): string } => {
  const compiled = RE2JS.compile(RE2JS.translateRegExp(source));
  return {
    test: (text) => compiled.matcher(text).find(),
    // ajv tells patterns apart by this.
    toString: () => `/${source}/`,
  };
};
