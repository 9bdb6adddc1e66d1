import http from 'node:http';

let delayMs = 0;
let count = 0;
/** When the last post came in, epoch milliseconds with fractions. */
let cameAt = 0;

const server = http.createServer((request, response) => {
  cameAt = performance.timeOrigin + performance.now();
  const answer = () => {
    count += 1;
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': 2 });
    response.end('ok');
  };
  request.on('end', () => (delayMs > 0 ? setTimeout(answer, delayMs) : answer()));
  request.resume();
});
server.keepAliveTimeout = 60_000;

const operations = {
  configure: (message) => {
    delayMs = message.delayMs;
    return {};
  },
  reset: () => {
    count = 0;
    return {};
  },
  count: () => ({ count, cameAt }),
};

process.on('message', (message) => process.send(operations[message.op](message)));
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
