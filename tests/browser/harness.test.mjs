// The harness itself: what it is to notice, it notices; the client answers as it is asked to; Flare starts, tells, stops.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { hindrances, launch, open } from './support/browser.mjs';
import { Flare } from './support/flare.mjs';
import { Receiver } from './support/receiver.mjs';

let browser, server, origin, content;

before(async () => {
  browser = await launch();
  server = createServer((request, response) => {
    if (request.url !== '/') return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'text/html', 'content-security-policy': "script-src 'unsafe-inline'" });
    response.end(`<!doctype html><html lang="en"><title>A page</title><link rel="icon" href="data:,">${content}`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

/** Opens a page with this content and says what a check of it complains about. */
async function complaintsOf(html) {
  content = html;
  const { page, watch, context } = await open(browser, origin);
  await page.goto('/', { waitUntil: 'networkidle' });
  const failed = await watch.check().then(() => '', (error) => error.message);
  await context.close();
  return failed;
}

test('a page in order passes', async () => {
  assert.equal(await complaintsOf('<main><h1>All is well</h1></main>'), '');
});

test('a request to another host is noticed', async () => {
  assert.match(await complaintsOf('<main><h1>Hi</h1><img alt="x" src="http://127.0.0.2:9/x.png"></main>'), /another host/);
});

test('an error on the console and one that is thrown are noticed', async () => {
  assert.match(await complaintsOf('<main><h1>Hi</h1><script>console.error("ouch")</script></main>'), /ouch/);
  assert.match(await complaintsOf('<main><h1>Hi</h1><script>throw new Error("oops")</script></main>'), /oops/);
});

test('what hinders people is noticed, also if only in the dark', async () => {
  assert.match(await complaintsOf('<main><h1>Hi</h1><img src="data:,"></main>'), /image-alt/);
  const dim = '<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #222 } }</style>';
  assert.match(await complaintsOf(`${dim}<main><h1>Hi</h1></main>`), /color-contrast[^]*dark|dark[^]*color-contrast/);
});

test('a page that is wider than the window is noticed', async () => {
  assert.match(await complaintsOf('<main><h1>Hi</h1><div style="width:3000px">far</div></main>'), /px wide/);
});

test('axe runs under a strict policy', async () => {
  content = '<main><h1>Hi</h1></main>';
  const { page, context } = await open(browser, origin);
  await page.goto('/');
  assert.deepEqual(await hindrances(page), []);
  await context.close();
});

test('Flare starts on a free port and tells a client, which answers as it is asked to', async () => {
  const [flare, receiver] = await Promise.all([Flare.start(), Receiver.start()]);
  try {
    const resource = await flare.api('POST', '/resources', {
      endpoint: 'http://origin.test/users/{id}',
      change: { field: 'rev' },
    });
    const paths = ['/ok', '/fail', '/slow'];
    const subscribe = (path) =>
      flare.api('POST', `/resources/${resource.id}/subscriptions`, { endpoint: { url: receiver.url(`${path}/{id}`) } });
    const [ok, fail] = await Promise.all(paths.map(subscribe));
    await flare.put('http://origin.test/users/1', { rev: 1 });
    await Promise.all(paths.map((path) => receiver.untilTold(path, 1)));
    await flare.until(ok, (status) => status.delivered === 1);
    const failing = await flare.until(fail, (status) => status.failed >= 1);
    assert.equal(failing.lastFailure.status, 500);
    assert.equal(JSON.parse(receiver.told('/ok')[0].body).revision, 1);
  } finally {
    await receiver.stop();
    await flare.stop();
  }
});
