// The binary: started with a directory of its own on a free port, and stopped. In: keys of the configuration as
// environment variables. Out: its address, and its API.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const BINARY = process.env.FLARE_BINARY ?? new URL('../../../target/debug/flare', import.meta.url).pathname;

/** A running process with an embedded store. */
export class Flare {
  /** Starts it; `variables` are keys of the configuration as environment variables. One that was killed goes on where it was. */
  static async start(variables = {}, { port = 0, directory } = {}) {
    const flare = new Flare();
    flare.directory = directory ?? (await mkdtemp(join(tmpdir(), 'flare-browser-')));
    const environment = { FLARE_LOG_FORMAT: 'json', FLARE_PROVIDER_STORE: 'embedded', ...variables };
    const data = join(flare.directory, 'data');
    flare.process = spawn(BINARY, ['start', '--addr', `127.0.0.1:${port}`, '--data', data], {
      cwd: flare.directory,
      env: environment,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    flare.log = [];
    flare.ended = new Promise((resolve) => flare.process.once('exit', (code, signal) => resolve(code ?? signal)));
    const ready = new Promise((resolve, reject) => {
      createInterface({ input: flare.process.stderr }).on('line', (line) => {
        flare.log.push(line);
        if (line.includes('Flare is ready')) resolve(find(JSON.parse(line), 'address'));
      });
      flare.process.once('error', reject);
      flare.ended.then((how) => reject(new Error(`Flare ended (${how}):\n${flare.log.slice(-20).join('\n')}`)));
    });
    flare.origin = `http://${await ready}`;
    return flare;
  }

  /** Ends it and removes its data; fails if it did not end cleanly. */
  async stop() {
    this.process.kill('SIGTERM');
    const how = await this.ended;
    await rm(this.directory, { recursive: true, force: true });
    if (how !== 0) throw new Error(`Flare ended with ${how}:\n${this.log.slice(-20).join('\n')}`);
  }

  /** A request to the API; answers the JSON of a success and throws anything else. */
  async api(method, path, body) {
    const response = await fetch(this.origin + path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text && response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
  }

  /** Says that a document changed. */
  put(url, document) {
    return this.api('PUT', `/documents/${url}`, document);
  }

  /** The state of a subscription, once `wanted` says that it is as it should be. */
  until(subscription, wanted) {
    const path = `/resources/${subscription.resource}/subscriptions/${subscription.id}/status`;
    return until(`the status of ${subscription.id}`, async () => {
      const status = await this.api('GET', path);
      return wanted(status) ? status : undefined;
    });
  }
}

/** Waits for the thing: asks again and again until there is an answer, and gives up after half a minute. */
export async function until(what, ask) {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A field of a log line, wherever the format puts it. */
function find(value, name) {
  if (typeof value !== 'object' || value === null) return undefined;
  return value[name] ?? Object.values(value).map((inner) => find(inner, name)).find((found) => found !== undefined);
}
