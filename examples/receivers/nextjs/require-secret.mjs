// The prefix alone would be a secret that everybody knows.
if (!/^whsec_\S+$/.test(process.env.WEBHOOK_SECRET ?? '')) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}
