'use strict';

module.exports = ({ env }) => ({
  auth: {
    secret: 'test-admin-secret',
    // A suite with two databases and a thousand kills takes longer than the host's half hour, and a session that is
    // not renewed ends after two hours, whatever its token says: templates.ts copies one for as long as a token lasts.
    sessions: {
      accessTokenLifespan: 6 * 3600,
      idleRefreshTokenLifespan: 86_400,
      idleSessionLifespan: 86_400,
      maxRefreshTokenLifespan: 86_400,
      maxSessionLifespan: 86_400,
    },
  },
  apiToken: { salt: 'test-api-token-salt' },
  transfer: { token: { salt: 'test-transfer-token-salt' } },
  // An empty ENCRYPTION_KEY boots the site without one: that case has its own tests.
  // Null, not undefined: the host keeps what an earlier site of the same process had there.
  secrets: { encryptionKey: env('ENCRYPTION_KEY', 'test-encryption-key') || null },
  rateLimit: { enabled: false },
  autoOpen: false,
  flags: { nps: false, promoteEE: false },
});
