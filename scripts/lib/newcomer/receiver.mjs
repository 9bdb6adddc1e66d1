import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';

/** The page's own function, from its block of code. */
export const verifierOf = (code) =>
  new Function('require', `${code}; return isGenuine;`)(createRequire(import.meta.url));

/**
 * A receiver that verifies with that function and keeps what is genuine.
 * @returns {Promise<{ events: object[], refused: number, close(): Promise<void> }>}
 */
export const startReceiver = async (port, isGenuine) => {
  const state = { events: [], refused: 0, secret: null };
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const raw = Buffer.concat(chunks);
      const genuine = isGenuine(state.secret, request.headers, raw);
      if (genuine) state.events.push(JSON.parse(raw.toString('utf8')));
      else state.refused += 1;
      response.writeHead(genuine ? 204 : 401).end();
    });
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  state.close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return state;
};
