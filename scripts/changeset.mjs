// npm run changeset: asks what a change is, and writes it into .changeset.
import { runChangesets } from './lib/changesets.mjs';

runChangesets(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
