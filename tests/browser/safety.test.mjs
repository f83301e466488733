// A page of another origin in a real browser: it tries every operation of the API, by fetch, form, image and frame, and nothing
// is done for it and nothing told. And what is written into fields of the API is shown by pages as text, and never run.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { World } from './support/world.mjs';

let world, server, evil;

before(async () => {
  world = await World.begin();
  await world.track();
  server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><html lang="en"><title>Kittens</title><h1>Kittens</h1>');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  evil = `http://127.0.0.1:${server.address().port}`;
});

after(async () => {
  server?.closeAllConnections();
  server?.close();
  await world?.end();
});

/** Every operation of the description, with something in place of what its path leaves open. */
async function operations() {
  const { paths } = await world.flare.api('GET', '/openapi.json');
  const filled = (path) =>
    path
      .replace(/^\/documents\/.*/, '/documents/http://shop.test/products/1')
      .replace('{rid}', world.resource.id)
      .replace(/\{[^}]+\}/g, 'x');
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => ['get', 'put', 'post', 'patch', 'delete'].includes(method))
      .map((method) => [method.toUpperCase(), filled(path)]),
  );
  assert.ok(all.length > 30);
  return all;
}

/** What there is, as whoever runs Flare sees it. */
async function state() {
  const ids = (list) => list.map(({ id }) => id);
  const { resources } = await world.flare.api('GET', '/resources');
  const { subscriptions } = await world.flare.api('GET', '/subscriptions');
  const document = await world.flare.api('GET', '/documents/http://shop.test/products/1');
  return JSON.stringify([ids(resources), subscriptions, document]);
}

test('a page of another origin can do nothing, and is told nothing', async () => {
  await world.put(1, 1);
  await world.subscribe('/ok');
  const [all, earlier] = [await operations(), await state()];
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(evil);
  const body = JSON.stringify({ endpoint: `${evil}/{id}`, change: { field: 'version' }, start: 'beginning' });
  const told = await page.evaluate(
    async ([all, origin, body]) => {
      const told = [];
      const note = (what, answer) => answer.text().then((text) => text && told.push(`${what}: ${text.slice(0, 80)}`));
      for (const [method, path] of all) {
        const content = method === 'GET' ? {} : { body };
        for (const mode of ['cors', 'no-cors']) {
          const headers = mode === 'cors' ? { 'content-type': 'application/json' } : { 'content-type': 'text/plain' };
          const options = { method, mode, headers, credentials: 'include', ...content };
          await fetch(origin + path, options).then(
            (answer) => note(`${method} ${path} ${mode}`, answer),
            () => {},
          );
        }
      }
      return told;
    },
    [all, world.flare.origin, body],
  );
  assert.deepEqual(told, []);
  // Forms that are sent by a script, into a frame and as a navigation.
  for (const [method, path] of all.filter(([method]) => method === 'POST' || method === 'GET')) {
    await page.evaluate(
      ([method, action, body]) => {
        const frame = document.createElement('iframe');
        frame.name = `frame-${Math.random()}`;
        document.body.append(frame);
        const form = Object.assign(document.createElement('form'), { method, action, target: frame.name });
        form.enctype = 'text/plain';
        form.append(Object.assign(document.createElement('input'), { name: body.slice(0, -1), value: '}' }));
        document.body.append(form);
        form.submit();
      },
      [method, world.flare.origin + path, body],
    );
  }
  const images = await page.evaluate(
    ([paths, origin]) =>
      Promise.all(
        paths.map(
          (path) =>
            new Promise((resolve) => {
              const image = new Image();
              image.onload = () => resolve(path);
              image.onerror = () => resolve(null);
              image.src = origin + path;
            }),
        ),
      ),
    [all.filter(([method]) => method === 'GET').map(([, path]) => path), world.flare.origin],
  );
  assert.deepEqual(images.filter(Boolean), []);
  await page.goto(`${evil}/again`);
  const post = page.waitForNavigation();
  await page.evaluate(
    ([action, body]) => {
      const form = Object.assign(document.createElement('form'), { method: 'post', action, enctype: 'text/plain' });
      form.append(Object.assign(document.createElement('input'), { name: body.slice(0, -1), value: '}' }));
      document.body.append(form);
      form.submit();
    },
    [`${world.flare.origin}/resources`, body],
  );
  const answered = await post;
  assert.equal(answered.status(), 403);
  assert.equal(await state(), earlier);
  await context.close();
});

test('a link to the web interface may be followed, and its pages are in nobody’s frame', async () => {
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(evil);
  await page.evaluate((href) => {
    const link = Object.assign(document.createElement('a'), { href, textContent: 'To Flare' });
    document.body.append(link);
  }, `${world.flare.origin}/ui`);
  await page.getByText('To Flare').click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  assert.ok(page.url().startsWith(world.flare.origin));
  await page.goto(evil);
  const framed = page.waitForResponse((response) => response.url().startsWith(world.flare.origin));
  await page.evaluate((src) => document.body.append(Object.assign(document.createElement('iframe'), { src })), `${world.flare.origin}/ui`);
  assert.equal((await framed).status(), 403);
  await context.close();
});

test('what is written into fields is shown as text, and never run', async () => {
  const script = '"><img src=x onerror="window.run=1"><script>window.run=1</script>';
  const made = await world.flare.api('POST', `/resources/${world.resource.id}/subscriptions`, {
    endpoint: {
      url: world.receiver.url(`/fail/xss?q=${encodeURIComponent(script)}`),
      headers: { 'X-Plain': [script] },
    },
    data: { [script]: script, text: script },
    filter: `document.name != '${script} and more'`,
    when: 'true',
  });
  world.receiver.answer('/fail/xss', 500, script);
  await world.flare.put('http://shop.test/products/xss', { version: 1, name: script, [script]: [script] });
  await world.flare.until(made, (status) => status.failed > 0);
  await world.flare.api('POST', `/resources/${world.resource.id}/subscriptions/${made.id}/pause`, { reason: script });
  const context = await world.browser.newContext({ baseURL: world.flare.origin });
  const page = await context.newPage();
  const dialogs = [];
  page.on('dialog', (dialog) => dialogs.push(dialog.message()));
  const document = encodeURIComponent('http://shop.test/products/xss');
  for (const path of [
    '/ui',
    '/ui/subscriptions',
    `/ui/subscriptions?q=${encodeURIComponent(script)}`,
    `/ui/subscriptions/${made.id}`,
    `/ui/subscriptions/${made.id}/edit`,
    `/ui/subscriptions/${made.id}/edit?view=json`,
    `/ui/subscriptions/${made.id}/attempts`,
    `/ui/subscriptions/${made.id}/documents`,
    `/ui/subscriptions/${made.id}/dead-letters`,
    `/ui/resources/${world.resource.id}`,
    `/ui/documents?url=${document}`,
    `/ui/documents?q=${encodeURIComponent(script)}`,
    `/ui/explain?document=${document}&subscription=${made.id}`,
    `/ui/explain?document=${encodeURIComponent(script)}`,
  ]) {
    await page.goto(path);
    assert.equal(await page.evaluate(() => window.run), undefined, path);
    assert.equal(await page.locator('img[src="x"]').count(), 0, path);
  }
  assert.deepEqual(dialogs, []);
  await context.close();
});
