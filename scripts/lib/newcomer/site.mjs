import { start, waitFor } from './programs.mjs';

/** JSON over HTTP; throws where the answer is no 2xx. */
export const ask = async (method, url, { token, body } = {}) => {
  const answer = await fetch(url, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
};

/** Starts a site and waits until it answers. */
export const startSite = async (command, project, port, env = {}) => {
  const site = start(command, project, env);
  const url = `http://localhost:${port}`;
  try {
    await waitFor(
      `the start of ${command}`,
      () => {
        if (site.exited()) throw new Error(`${command} ended`);
        return fetch(`${url}/_health`).then(
          (answer) => answer.ok,
          () => false
        );
      },
      180_000
    );
  } catch (error) {
    throw new Error(`${error.message}:\n${site.output().slice(-5000)}`);
  }
  return { ...site, url };
};

/** First steps on a new site's screen: the first administrator, and an API token. */
export const makeAccounts = async (url) => {
  const { data } = await ask('POST', `${url}/admin/register-admin`, {
    body: {
      firstname: 'Ada',
      lastname: 'Site',
      email: 'ada@example.com',
      password: 'Check-1234',
    },
  });
  const admin = data.token ?? data.accessToken;
  const token = await ask('POST', `${url}/admin/api-tokens`, {
    token: admin,
    body: { name: 'check', description: '', type: 'full-access', lifespan: null },
  });
  return { admin, token: token.data.accessKey };
};
