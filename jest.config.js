'use strict';

// `ignoreDynamic` keeps `await import('got')` a real import: got is ESM only, and jest runs with
// --experimental-vm-modules (scripts/test.mjs passes it).
const transform = {
  '^.+\\.tsx?$': [
    '@swc/jest',
    {
      jsc: { parser: { syntax: 'typescript', tsx: true }, target: 'es2022' },
      module: { type: 'commonjs', ignoreDynamic: true },
    },
  ],
};

const modulePathIgnorePatterns = ['<rootDir>/.tmp/', '<rootDir>/dist/', '<rootDir>/playground/'];

/** @type {import('jest').Config} */
module.exports = {
  testSequencer: '<rootDir>/tests/support/sequencer.js',
  projects: [
    {
      displayName: 'unit',
      rootDir: __dirname,
      testEnvironment: '<rootDir>/tests/support/environment.js',
      testMatch: ['<rootDir>/tests/unit/**/*.test.ts'],
      moduleNameMapper: { '^@strapi/utils$': '<rootDir>/tests/support/strapi-utils.js' },
      transform,
      modulePathIgnorePatterns,
    },
    {
      displayName: 'api',
      rootDir: __dirname,
      testEnvironment: '<rootDir>/tests/support/environment.js',
      testMatch: ['<rootDir>/tests/api/**/*.test.ts'],
      transform,
      modulePathIgnorePatterns,
    },
    {
      displayName: 'samples',
      rootDir: __dirname,
      testEnvironment: '<rootDir>/tests/support/environment.js',
      testMatch: ['<rootDir>/tests/samples/**/*.test.ts'],
      transform,
      modulePathIgnorePatterns,
    },
    {
      displayName: 'soak',
      rootDir: __dirname,
      testEnvironment: '<rootDir>/tests/support/environment.js',
      testMatch: ['<rootDir>/tests/soak/**/*.test.ts'],
      // Wants the machine to itself: its limits of time hold for five processes, not for what is beside them.
      testPathIgnorePatterns:
        process.env.SOAK === undefined ? ['/tests/soak/cluster', '/tests/soak/faults'] : [],
      transform,
      modulePathIgnorePatterns,
    },
    {
      displayName: 'e2e',
      rootDir: __dirname,
      testEnvironment: '<rootDir>/tests/support/environment.js',
      testMatch: ['<rootDir>/tests/e2e/**/*.test.ts'],
      transform,
      modulePathIgnorePatterns,
    },
  ],
};
