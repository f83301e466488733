// A client: a server that remembers what it was told and answers as it is asked to. The path says how: /ok, /fail (500),
// /gone (410), /hang (never), /slow (after `delay` ms), or whatever `answer` was set for that path.
import { createServer } from 'node:http';

import { until } from './flare.mjs';

/** A client of Flare. */
export class Receiver {
  static async start() {
    const receiver = new Receiver();
    receiver.requests = [];
    receiver.answers = new Map();
    receiver.delay = 150;
    receiver.server = createServer((request, response) => receiver.#take(request, response));
    await new Promise((resolve) => receiver.server.listen(0, '127.0.0.1', resolve));
    receiver.origin = `http://127.0.0.1:${receiver.server.address().port}`;
    return receiver;
  }

  /** An address of this client. */
  url(path) {
    return this.origin + path;
  }

  /** From now on what begins with `path` is answered with this status and body. */
  answer(path, status, body = '') {
    this.answers.set(path, { status, body });
  }

  /** What came to addresses that begin with `path`. */
  told(path) {
    return this.requests.filter((request) => request.path.startsWith(path));
  }

  /** Waits until so many requests came there. */
  untilTold(path, count) {
    return until(`${count} requests at ${path}`, async () => this.told(path).length >= count);
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #take(request, response) {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const { method, url: path, headers } = request;
      this.requests.push({ method, path, headers, body });
      const { status, text, after } = this.#decide(path);
      if (status === undefined) return;
      const send = () => response.writeHead(status, { 'content-type': 'application/json' }).end(text);
      after ? setTimeout(send, after) : send();
    });
  }

  #decide(path) {
    const told = [...this.answers].find(([start]) => path.startsWith(start));
    if (told) return { status: told[1].status, text: told[1].body };
    if (path.startsWith('/hang')) return {};
    if (path.startsWith('/fail')) return { status: 500, text: '{"message":"the wishlist is on fire"}' };
    if (path.startsWith('/gone')) return { status: 410, text: '' };
    if (path.startsWith('/slow')) return { status: 200, text: '{"ok":true}', after: this.delay };
    return { status: 200, text: '{"ok":true}' };
  }
}
