// Node's HTTP server on the UNIX socket named by the argument, answering as Conformance::Battery::APP does.
'use strict';

const http = require('http');
const hex = (part) => 'x' + Buffer.from(part, 'latin1').toString('hex');

const server = http.createServer({ insecureHTTPParser: false, requireHostHeader: true }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const echo = [request.method, request.url, request.headers.host || '', Buffer.concat(chunks).toString('latin1')];
    response.setHeader('x-echo', echo.map(hex).join(' '));
    response.setHeader('content-length', '0');
    response.end();
  });
});

server.listen(process.argv[2], () => process.stdout.write('ready\n'));
process.stdin.on('end', () => process.exit(0)).resume(); // whoever started us is gone
