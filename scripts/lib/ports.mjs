import net from 'node:net';

/** The code of the error when listening there fails; undefined if it works. */
const obstacle = (host, port) =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', ({ code }) => resolve(code));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });

const explain = (code, host, { what, variable, port }) => {
  if (code === 'EADDRINUSE') {
    return (
      `Port ${port}, which ${what} wants, is in use on ${host}. ` +
      `Stop the other program, or choose a port: ${variable}=${port + 1} npm start`
    );
  }
  if (code === 'EACCES') {
    return `You may not listen on port ${port}: choose one above 1023 as ${variable}.`;
  }
  return `Nothing can listen on HOST=${host} (${code}): it has to be an address of this computer.`;
};

/**
 * Throws with a message for a person where one of the ports cannot be listened on.
 * @param {string} host
 * @param {{ what: string, variable: string, port: number }[]} wanted
 */
export const requireFreePorts = async (host, wanted) => {
  for (const [index, { what, variable, port }] of wanted.entries()) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new Error(`${variable} is not a port: ${process.env[variable]}`);
    }
    const other = wanted.slice(0, index).find((earlier) => earlier.port === port);
    if (other) throw new Error(`${variable} is ${port}, which is the port of ${other.what}.`);
    const code = await obstacle(host, port);
    if (code) throw new Error(explain(code, host, { what, variable, port }));
  }
};
