import http from 'node:http';

const KEPT = 100;

/** The till's page: one file, no build, texts set as text only. */
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Till</title>
<style>
  :root { color-scheme: light dark; --line: #dcdce4; --soft: #f6f6f9; --ink: #32324d; --mute: #666687;
    --good: #328048; --bad: #d02b20; --warn: #be5d01; --card: #fff; }
  @media (prefers-color-scheme: dark) { :root { --line: #32324d; --soft: #181826; --ink: #f6f6f9;
    --mute: #a5a5ba; --good: #7bd194; --bad: #f38b84; --warn: #f29d41; --card: #212134; } }
  * { box-sizing: border-box; }
  body { margin: 0; background: var(--soft); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
  main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
  h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
  p { margin: 0; color: var(--mute); }
  fieldset { display: flex; flex-wrap: wrap; gap: .5rem; border: 0; padding: 0; margin: 1rem 0 0; }
  button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
    border-radius: 4px; padding: .35rem .7rem; cursor: pointer; }
  :focus-visible { outline: 2px solid #4945ff; outline-offset: 2px; }
  ol { list-style: none; margin: 1.5rem 0 0; padding: 0; display: grid; gap: .5rem; }
  li { background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
  summary { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .7rem 1rem; cursor: pointer; }
  summary b { flex: 0 0 7rem; } summary span:last-of-type { flex: 1; } time { color: var(--mute); }
  .accepted { color: var(--good); } .refused { color: var(--bad); } .waiting, .stale { color: var(--warn); }
  pre { margin: 0; padding: 1rem; border-top: 1px solid var(--line); overflow: auto; font-size: 13px; }
</style>
</head>
<body>
<main>
  <h1>Till</h1>
  <p id="status" role="status">Connecting …</p>
  <fieldset id="actions"><legend>Send</legend></fieldset>
  <ol id="answers"></ol>
</main>
<script>
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const list = document.getElementById('answers');
  const status = document.getElementById('status');
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
  source.onerror = () => { status.textContent = 'The till is not running; waiting for it …'; };
</script>
</body>
</html>
`;

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'",
};

const reply = (response, status, text, headers = { 'content-type': 'text/plain' }) => {
  response.writeHead(status, headers);
  response.end(text);
};

/**
 * Shows what a till sent and what it was answered, and sends more at a click. Where the port is
 * taken, another one is.
 * @param {{ host: string, port: number, note: string,
 *   actions: Record<string, () => Promise<unknown>> }} options
 * @returns {Promise<{ url: string, show(settlement: object): void, close(): void }>}
 */
export const openTillPage = async ({ host, port, note, actions }) => {
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
    url: `http://${host}:${server.address().port}/`,
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
