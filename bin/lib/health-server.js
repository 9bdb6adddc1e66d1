'use strict';

const http = require('node:http');

const answer = (response, status, body) => {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
  });
  response.end(text);
};

/**
 * Answers `GET /health` for whatever watches over a worker: 200 while it works, 503 before and after.
 * It says nothing of the database: a worker that is restarted because that is away would lose the
 * outcomes that it keeps until they can be recorded, and have receivers sent them a second time.
 * @param {{ host: string, port: number }} address
 * @param {() => { state: 'starting' | 'working' | 'stopping', serves: string[] }} status
 * @returns {Promise<http.Server>} once it listens
 */
const startHealthServer = ({ host, port }, status) =>
  new Promise((resolve, reject) => {
    const server = http.createServer((request, response) => {
      const isHealth = /^\/health\/?(\?|$)/.test(request.url);
      if (!isHealth) return answer(response, 404, { ok: false });
      if (!['GET', 'HEAD'].includes(request.method)) return answer(response, 405, { ok: false });
      const ok = status().state === 'working';
      return answer(response, ok ? 200 : 503, { ok, ...status() });
    });
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });

module.exports = { startHealthServer };
