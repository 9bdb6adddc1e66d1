import net from 'node:net';

const isFree = (host, port) =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });

/**
 * Throws with a message for a person where one of the ports is in use.
 * @param {string} host
 * @param {{ what: string, variable: string, port: number }[]} wanted
 */
export const requireFreePorts = async (host, wanted) => {
  for (const { what, variable, port } of wanted) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new Error(`${variable} is not a port: ${process.env[variable]}`);
    }
    if (wanted.some((other) => other.variable !== variable && other.port === port)) {
      throw new Error(`${variable} has the port ${port} of another part of the playground.`);
    }
    if (!(await isFree(host, port))) {
      throw new Error(
        `Port ${port}, which ${what} wants, is in use on ${host}. ` +
          `Stop the other program, or choose a port: ${variable}=${port + 1} npm start`
      );
    }
  }
};
