/** The receiver's page: one file, no build, texts set as text only. */
export const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Receiver</title>
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
  form, fieldset { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; border: 0; padding: 0; margin: 1rem 0 0; }
  input, button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
    border-radius: 4px; padding: .35rem .7rem; }
  input { flex: 1 1 20rem; }
  button { cursor: pointer; }
  button[aria-pressed=true] { border-color: currentColor; font-weight: 600; }
  :focus-visible { outline: 2px solid #4945ff; outline-offset: 2px; }
  ol { list-style: none; margin: 1.5rem 0 0; padding: 0; display: grid; gap: .5rem; }
  li { background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
  li.new { animation: arrive 1.2s ease-out; }
  @keyframes arrive { from { border-color: #4945ff; box-shadow: 0 0 0 3px #4945ff40; } }
  @media (prefers-reduced-motion: reduce) { li.new { animation: none; } }
  summary { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .7rem 1rem; cursor: pointer; }
  summary b { flex: 0 0 12rem; }
  summary .about { flex: 1; color: var(--mute); min-width: 8rem; }
  time { color: var(--mute); font-variant-numeric: tabular-nums; }
  .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
  pre { margin: 0; padding: 1rem; border-top: 1px solid var(--line); overflow: auto; font-size: 13px; }
</style>
</head>
<body>
<main>
  <h1>Receiver</h1>
  <p id="status" role="status">Connecting …</p>
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
  </form>
  <ol id="arrivals"></ol>
</main>
<script>
  const list = document.getElementById('arrivals');
  const status = document.getElementById('status');
  let count = 0;
  let known = { mode: 'ok', hasSecret: false };

  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const parse = (text) => { try { return JSON.parse(text); } catch { return undefined; } };
  const aboutWhat = (body) => {
    const data = body?.data ?? {};
    const subject = data.contact ?? data.deal ?? data;
    return [subject.email ?? subject.title ?? subject.name ?? subject.sku ?? subject.message, data.tag?.name,
      Array.isArray(data.changed) ? data.changed.join(', ') : undefined].filter(Boolean).join(' · ');
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
  source.onerror = () => { status.textContent = 'The receiver is not running; waiting for it …'; };
</script>
</body>
</html>
`;
