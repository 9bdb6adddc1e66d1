import tseslint from 'typescript-eslint';

// eslint-suppressions.json says what broke a rule before there was one, by file and number. It only
// shrinks: one more is an error, and so is an entry that is no longer needed, which
// `npm run lint:fewer` takes out. Where code moved to another file, `npx eslint <file> --suppress-all`
// takes its entries along; a look at the difference says whether there are more.

/** A hidden way to find a service. */
const WEAK_MAP_OF_STRAPI = {
  selector:
    ':matches(NewExpression[callee.name="WeakMap"], TSTypeReference[typeName.name="WeakMap"]) > TSTypeParameterInstantiation > TSTypeReference[typeName.right.name="Strapi"]',
  message: 'What belongs to a site is made once at its start and handed on.',
};

const CLIENTS = '[value=/^(postgres|mysql|sqlite|better-sqlite3)$/]';
const CLIENT_BY_NAME = {
  selector: `BinaryExpression[operator=/^[!=]==$/] > Literal${CLIENTS}, SwitchCase > Literal.test${CLIENTS}`,
  message: 'What differs between databases is said in server/src/database/.',
};

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/node_modules/**',
      '**/.tmp/**',
      'playground/build/**',
      'playground/.strapi/**',
      'playground/types/**',
      'coverage/**',
      'docs/.vitepress/.temp/**',
    ],
  },
  ...tseslint.configs.recommended,
  {
    files: ['**/*.{ts,tsx,js,mjs}'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_' },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  {
    files: ['server/src/**', 'shared/**', 'admin/src/**'],
    rules: {
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', 4],
    },
  },
  {
    files: ['server/src/**'],
    rules: {
      'no-restricted-syntax': ['error', WEAK_MAP_OF_STRAPI, CLIENT_BY_NAME],
      'no-restricted-properties': [
        'error',
        { object: 'URL', property: 'canParse', message: 'Node 20 may refuse ü: use urlOf.' },
      ],
    },
  },
  {
    files: ['server/src/database/**'],
    rules: { 'no-restricted-syntax': ['error', WEAK_MAP_OF_STRAPI] },
  },
  {
    files: ['**/*.js'],
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    files: ['scripts/**', 'bench/**', 'playground/**', 'tests/**', 'examples/**', 'till-client/**'],
    rules: { 'no-console': 'off' },
  }
);
