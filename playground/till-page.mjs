import http from 'node:http';
import { PAGE_HEADERS, pageShell } from './page-shell.mjs';

const KEPT = 100;

const style = `
  summary b { flex: 0 0 7rem; } summary span:last-of-type { flex: 1; }
  .accepted { color: var(--good); } .refused { color: var(--bad); } .waiting, .stale { color: var(--warn); }`;

const controls = `
  <fieldset id="actions"><legend>Send</legend></fieldset>`;

const script = `
  const show = (entry) => {
    const summary = make('summary');
    const time = make('time', new Date(entry.at).toLocaleTimeString());
    time.dateTime = entry.at;
    summary.append(make('b', entry.kind), make('span', entry.record.external_id),
      make('span', entry.outcome + ': ' + entry.answer, entry.outcome), time);
    const details = make('details');
    details.append(summary, make('pre', JSON.stringify(entry.record, null, 2)));
    const item = make('li');
    item.dataset.kind = entry.kind;
    item.dataset.outcome = entry.outcome;
    item.append(details);
    list.prepend(item);
    while (list.children.length > 100) list.lastChild.remove();
  };
  const source = new EventSource('/answers');
  source.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.actions) {
      list.replaceChildren();
      document.getElementById('actions').replaceChildren(make('legend', 'Send'), ...message.actions.map((name) => {
        const button = make('button', name);
        button.addEventListener('click', () =>
          fetch('/send', { method: 'POST', headers: { 'x-till': '1' }, body: name }));
        return button;
      }));
    }
    for (const entry of message.entries) show(entry);
    status.textContent = message.note;
  };
  source.onerror = () => { status.textContent = 'The till is not running; waiting for it …'; };`;

const parts = { title: 'Till', style, controls, list: 'answers', script };

/** A wildcard listens on every address, and is none that a browser can open. */
const shownHost = (host) =>
  ({ '0.0.0.0': '127.0.0.1', '::': '[::1]', '::1': '[::1]' })[host] ?? host;

const reply = (response, status, text, headers = { 'content-type': 'text/plain' }) => {
  response.writeHead(status, headers);
  response.end(text);
};

/**
 * Shows what a till sent and what it was answered, and sends more at a click. Where the port is
 * taken, another one is.
 * @param {{ host: string, port: number, note: string, siteUrl: string,
 *   actions: Record<string, () => Promise<unknown>> }} options
 * @returns {Promise<{ url: string, show(settlement: object): void, close(): void }>}
 */
export const openTillPage = async ({ host, port, note, siteUrl, actions }) => {
  const page = pageShell({ ...parts, siteUrl });
  const entries = [];
  const watchers = new Set();
  const write = (response, message) =>
    response.write(`data: ${JSON.stringify({ note, ...message })}\n\n`);

  const send = async (request, response) => {
    // Another site's page cannot send this header without asking first.
    if (request.headers['x-till'] !== '1') return reply(response, 403, 'forbidden');
    let name = '';
    for await (const chunk of request) name = (name + chunk).slice(0, 100);
    if (!Object.hasOwn(actions, name)) return reply(response, 404, 'no such action');
    await actions[name]();
    return reply(response, 200, 'kept');
  };
  const route = async (request, response) => {
    const asked = `${request.method} ${request.url}`;
    if (asked === 'GET /') return reply(response, 200, page, PAGE_HEADERS);
    if (asked === 'POST /send') return send(request, response);
    if (asked !== 'GET /answers') return reply(response, 404, 'not here');
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    write(response, { actions: Object.keys(actions), entries });
    watchers.add(response);
    response.once('close', () => watchers.delete(response));
  };

  const server = http.createServer((request, response) => {
    route(request, response).catch((error) => {
      console.error(`till: ${error.message}`);
      if (!response.headersSent) reply(response, 500, 'failed');
    });
  });
  const listen = (wanted) =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(wanted, host, resolve);
    });
  await listen(port).catch(() => listen(0));

  return {
    url: `http://${shownHost(host)}:${server.address().port}/`,
    show({ kind, outcome, body, answer, error }) {
      const said = answer
        ? `${answer.status}, event ${answer.event_id}, ${answer.duplicate ? 'a duplicate' : answer.state}`
        : error.message;
      const record = JSON.parse(body.toString('utf8'));
      const entry = { at: new Date().toISOString(), kind, outcome, answer: said, record };
      entries.push(entry);
      if (entries.length > KEPT) entries.shift();
      for (const response of watchers) write(response, { entries: [entry] });
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
};
