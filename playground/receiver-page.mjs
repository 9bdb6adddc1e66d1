import { pageShell } from './page-shell.mjs';

const style = `
  input { flex: 1 1 20rem; }
  button[aria-pressed=true] { border-color: currentColor; font-weight: 600; }
  li.new { animation: arrive 1.2s ease-out; }
  @keyframes arrive { from { border-color: #4945ff; box-shadow: 0 0 0 3px #4945ff40; } }
  @media (prefers-reduced-motion: reduce) { li.new { animation: none; } }
  summary b { flex: 0 0 12rem; }
  summary .about { flex: 1; color: var(--mute); min-width: 8rem; }
  .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }`;

const controls = `
  <fieldset>
    <legend>Answer the next posts with</legend>
    <button data-mode="ok">200</button>
    <button data-mode="fail">500</button>
    <button data-mode="slow">nothing for 11 seconds</button>
    <button data-mode="redirect">a redirect</button>
  </fieldset>
  <form>
    <input name="secret" aria-label="Secret of the webhook" placeholder="After a rotation: the new secret, whsec_…" autocomplete="off" spellcheck="false">
    <button>Use this secret</button>
  </form>`;

const script = `
  let count = 0;
  let known = { mode: 'ok', hasSecret: false };

  const parse = (text) => { try { return JSON.parse(text); } catch { return undefined; } };
  const aboutWhat = (body) => {
    const data = body?.data ?? {};
    const subject = data.contact ?? data.deal ?? data.item ?? data.connection ?? data;
    const lines = (data.line_items ?? data.counts ?? []).map((line) => line.quantity + ' × ' + line.sku);
    const level = data.previous_quantity === undefined ? '' : data.previous_quantity + ' → ' + data.quantity;
    return [subject.email ?? subject.title ?? subject.name ?? subject.sku ?? subject.message, data.tag?.name,
      lines.join(', '), level, Array.isArray(data.changed) ? data.changed.join(', ') : undefined].filter(Boolean).join(' · ');
  };
  const verdict = (arrival) => {
    if (arrival.refused) return ['refused: ' + arrival.refused, 'bad'];
    if (arrival.duplicate) return ['verified, had it already', 'warn'];
    if (arrival.answered !== 200) return ['verified, answered ' + arrival.answered, 'warn'];
    return ['verified', 'good'];
  };
  const show = (arrival, isNew) => {
    const body = parse(arrival.body);
    const item = make('li', undefined, isNew ? 'new' : '');
    item.dataset.event = arrival.event;
    item.dataset.delivery = arrival.id;
    const details = make('details');
    const summary = make('summary');
    const [text, colour] = verdict(arrival);
    const time = make('time', new Date(arrival.at).toLocaleTimeString());
    time.dateTime = arrival.at;
    summary.append(make('b', arrival.event), make('span', aboutWhat(body), 'about'), make('span', text, colour), time);
    details.append(summary, make('pre', body ? JSON.stringify(body, null, 2) : arrival.body));
    item.append(details);
    list.prepend(item);
    count += 1;
    while (list.children.length > 200) list.lastChild.remove();
  };
  const describe = () => {
    status.textContent = (known.hasSecret ? '' : 'No secret yet: paste the webhook\\u2019s below. ') +
      (count === 0 ? 'Nothing has arrived yet.' : count === 1 ? '1 post arrived.' : count + ' posts arrived.');
    for (const button of document.querySelectorAll('[data-mode]'))
      button.setAttribute('aria-pressed', String(button.dataset.mode === known.mode));
  };
  const configure = (body) => fetch('/configure', { method: 'POST', headers: { 'x-receiver': '1' }, body: JSON.stringify(body) });

  for (const button of document.querySelectorAll('[data-mode]'))
    button.addEventListener('click', () => configure({ mode: button.dataset.mode }));
  document.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const field = event.target.elements.secret;
    configure({ secret: field.value.trim() }).then(() => { field.value = ''; });
  });

  const source = new EventSource('/arrivals');
  source.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'all') {
      list.replaceChildren();
      count = 0;
      for (const arrival of message.arrivals) show(arrival, false);
    }
    if (message.type === 'arrival') show(message.arrival, true);
    if ('mode' in message) known = { mode: message.mode, hasSecret: message.hasSecret };
    describe();
  };
  source.onerror = () => { status.textContent = 'The receiver is not running; waiting for it …'; };`;

const parts = { title: 'Receiver', style, controls, list: 'arrivals', script };

/**
 * What arrived, newest first, with a choice of answers for the next posts.
 * @param {string | undefined} siteUrl  of the site whose panel it links to
 */
export const receiverPage = (siteUrl) => pageShell({ ...parts, siteUrl });
