/** What the browser is told with each page: nothing but its own style and script, and its own server. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'",
};

const OVERVIEW = '/admin/plugins/switchboard/overview';

/** Back to the panel, where the address of the site is known. */
const linkTo = (siteUrl) =>
  siteUrl ? `<nav><a href="${siteUrl}${OVERVIEW}">Admin panel</a></nav>` : '';

/**
 * A page of the playground: one file, no build, texts set as text only. Its script finds `status`,
 * `list` and `make(tag, text, className)`.
 * @param {{ title: string, style: string, controls: string, list: string, script: string,
 *   siteUrl?: string }} parts
 *   `controls` is HTML above the list, `list` the id of that list; texts begin with a line break
 */
export const pageShell = ({ title, style, controls, list, script, siteUrl }) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
  :root { color-scheme: light dark; --line: #dcdce4; --soft: #f6f6f9; --ink: #32324d; --mute: #666687;
    --good: #328048; --bad: #d02b20; --warn: #be5d01; --card: #fff; }
  @media (prefers-color-scheme: dark) { :root { --line: #32324d; --soft: #181826; --ink: #f6f6f9;
    --mute: #a5a5ba; --good: #7bd194; --bad: #f38b84; --warn: #f29d41; --card: #212134; } }
  * { box-sizing: border-box; }
  body { margin: 0; background: var(--soft); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
  main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
  h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
  nav { float: right; } a { color: inherit; }
  p { margin: 0; color: var(--mute); }
  form, fieldset { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; border: 0; padding: 0; margin: 1rem 0 0; }
  input, button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
    border-radius: 4px; padding: .35rem .7rem; }
  button { cursor: pointer; }
  :focus-visible { outline: 2px solid #4945ff; outline-offset: 2px; }
  ol { list-style: none; margin: 1.5rem 0 0; padding: 0; display: grid; gap: .5rem; }
  li { background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
  summary { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .7rem 1rem; cursor: pointer; }
  time { color: var(--mute); font-variant-numeric: tabular-nums; }
  pre { margin: 0; padding: 1rem; border-top: 1px solid var(--line); overflow: auto; font-size: 13px; }${style}
</style>
</head>
<body>
<main>
  ${linkTo(siteUrl)}
  <h1>${title}</h1>
  <p id="status" role="status">Connecting …</p>${controls}
  <ol id="${list}"></ol>
</main>
<script>
  const status = document.getElementById('status');
  const list = document.getElementById('${list}');
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };${script}
</script>
</body>
</html>
`;
