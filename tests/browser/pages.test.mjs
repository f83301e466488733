// Dashboard, resources, documents, explain, cluster and settings, with real traffic: one client that answers, one that
// fails, one that dawdles.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, open } from './support/browser.mjs';
import { Flare, until } from './support/flare.mjs';
import { Receiver } from './support/receiver.mjs';

let browser, flare, receiver, resource, clients;

/** What seals secrets: 32 bytes that no page may show. */
const KEY = 'q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=';

before(async () => {
  [browser, flare, receiver] = await Promise.all([
    launch(),
    Flare.start({
      FLARE_AUTH_SECRET_KEY: KEY,
      FLARE_DELIVERY_FAILING_AFTER: '0s',
      FLARE_DOMAIN_PAGINATION_DEFAULT_LIMIT: '5',
    }),
    Receiver.start(),
  ]);
});

after(async () => {
  await browser?.close();
  await receiver?.stop();
  await flare?.stop();
});

/** Runs `story` on a page; at the end nothing may be left to complain about. */
async function visit(path, story, options) {
  const { page, watch, context } = await open(browser, flare.origin, options);
  try {
    await page.goto(path);
    await story(page, watch);
    watch.clean();
  } finally {
    await context.close();
  }
}

/** A resource, three clients, and a document that all are told of. */
async function world() {
  if (resource) return;
  resource = await flare.api('POST', '/resources', {
    endpoint: 'http://api.company.com/users/{id}',
    change: { field: 'version' },
  });
  const subscribe = (path) =>
    flare.api('POST', `/resources/${resource.id}/subscriptions`, {
      endpoint: { url: receiver.url(`${path}/{id}`) },
      delivery: { retry: { interval: '1h' } },
    });
  const [ok, fail, slow] = await Promise.all(['/ok', '/fail', '/slow'].map(subscribe));
  clients = { ok, fail, slow };
  await flare.put('http://api.company.com/users/1', { version: 1, name: 'Ada' });
  await flare.until(ok, (status) => status.delivered === 1);
  await flare.until(fail, (status) => status.status === 'failing');
}

test('without anything, pages say how to begin', async () => {
  await visit('/', async (page, watch) => {
    await page.waitForURL('**/ui');
    await page.getByRole('heading', { name: 'Nothing is tracked yet' }).waitFor();
    await watch.check();
    await watch.picture('dashboard-empty');
    await page.getByRole('link', { name: 'Resources', exact: true }).click();
    await page.getByRole('heading', { name: 'No resources yet' }).waitFor();
    assert.match(await page.locator('pre').innerText(), new RegExp(`curl -X POST ${flare.origin}/resources`));
    await watch.check();
    await page.getByRole('button', { name: 'Copy the command' }).click();
    await until('the command is copied', () => page.evaluate(() => navigator.clipboard.readText().then((text) => text.startsWith('curl'))));
    await page.goto('/ui/documents');
    await page.getByRole('heading', { name: 'No documents yet' }).waitFor();
    await watch.check();
  });
});

test('a resource is made in a form that has the words of the API beside its fields, and deleted after a question', async () => {
  await visit('/ui/resources/new', async (page, watch) => {
    watch.expect(/400 \(Bad Request\)/);
    await page.getByLabel('Endpoint').fill('http://shop.test/items');
    await page.getByLabel('Where the revision is').fill('rev');
    await page.getByRole('button', { name: 'Create the resource' }).click();
    const endpoint = page.getByLabel('Endpoint');
    await page.locator('#endpoint-error:visible').waitFor();
    assert.match(await page.locator('#endpoint-error').innerText(), /wildcard/);
    assert.equal(await endpoint.getAttribute('aria-invalid'), 'true');
    assert.equal(await endpoint.inputValue(), 'http://shop.test/items');
    await watch.check();
    await watch.picture('resource-refused');
    await endpoint.fill('http://shop.test/items/{id}');
    await page.getByRole('button', { name: 'Create the resource' }).click();
    await page.getByRole('status').getByText('http://shop.test/items/{id} is tracked from now on.').waitFor();
    await watch.check();
    await page.reload();
    assert.equal(await page.getByRole('status').count(), 0, 'it is told once');
    await page.getByRole('button', { name: 'Delete' }).click();
    const question = page.getByRole('dialog');
    await question.getByText('go with it, at once and for good').waitFor();
    await watch.check();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Delete' }).click();
    await question.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**/ui/resources');
    await page.getByRole('status').getByText('deleted').waitFor();
    const { pagination } = await flare.api('GET', '/resources');
    assert.equal(pagination.total, 0);
  });
});

test('the dashboard moves within a second or so of the traffic, and names the client in trouble', async () => {
  await world();
  await visit('/ui', async (page, watch) => {
    await page.getByRole('heading', { name: 'Clients in trouble' }).waitFor();
    await page.getByRole('link', { name: receiver.url('/fail/{id}') }).waitFor();
    // Nothing has reloaded the page if this is still there afterwards.
    await page.evaluate(() => (document.body.dataset.mark = 'same page'));
    let version = 1;
    const traffic = setInterval(() => flare.put('http://api.company.com/users/2', { version: (version += 1) }).catch(() => {}), 20);
    try {
      const changes = page.locator('.tile', { hasText: 'Changes' }).locator('.figure');
      await until('the rate of changes is shown', async () => parseFloat(await changes.innerText()) > 1);
      const line = page.locator('#deliveries-title').locator('xpath=ancestor::section').locator('path.line-a.line');
      const first = await line.getAttribute('d');
      await until('the line moves', async () => (await line.getAttribute('d')) !== first);
    } finally {
      clearInterval(traffic);
    }
    assert.equal(await page.evaluate(() => document.body.dataset.mark), 'same page');
    await watch.check();
    await watch.picture('dashboard');
    await page.getByRole('link', { name: '24 h' }).click();
    await page.waitForURL('**/ui?range=24h');
    await watch.check();
  });
});

test('resources are listed and shown, and one that is followed is not deleted', async () => {
  await world();
  await visit('/ui/resources', async (page, watch) => {
    await watch.check();
    await watch.picture('resources');
    await page.getByRole('link', { name: resource.endpoint }).click();
    await page.getByRole('heading', { name: resource.endpoint }).waitFor();
    await watch.check();
    await watch.picture('resource');
    await page.locator('main').getByRole('link', { name: '3', exact: true }).click();
    await page.waitForURL(`**/ui/resources/${resource.id}/subscriptions`);
    await page.getByRole('link', { name: receiver.url('/slow/{id}') }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: resource.endpoint }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByText('It has 3 subscriptions').waitFor();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByRole('alert').getByText('still has subscriptions (3)').waitFor();
    await watch.check();
  });
});

test('documents are found by url and by its beginning, with who has them and who lacks them', async () => {
  await world();
  await visit('/ui/documents', async (page, watch) => {
    const search = page.getByRole('searchbox', { name: 'Url, or its beginning' });
    await search.fill('http://api.company.com/us');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/q=/);
    await page.getByRole('link', { name: 'http://api.company.com/users/1', exact: true }).waitFor();
    await watch.check();
    await watch.picture('documents');
    await search.fill('http://api.company.com/nothing');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('heading', { name: 'No such document' }).waitFor();
    await search.fill('http://api.company.com/users/1');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('heading', { name: 'http://api.company.com/users/1' }).waitFor();
    assert.match(await page.locator('pre.content').innerText(), /"name": "Ada"/);
    const row = (path) => page.getByRole('row', { name: new RegExp(path) });
    await row('/ok/').getByText('this revision').waitFor();
    await row('/fail/').getByText(/nothing|not known/).first().waitFor();
    await watch.check();
    await watch.picture('document');
    await page.getByRole('link', { name: 'Those who lack it' }).click();
    await page.waitForURL(/lagging=true/);
    await row('/fail/').waitFor();
    assert.equal(await row('/ok/').count(), 0);
    await row('/fail/').getByRole('link', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: /owed|not known/ }).waitFor();
    await watch.check();
    await watch.picture('explain');
  });
});

test('a document is put and deleted as an origin would, and clients are told', async () => {
  await world();
  await visit('/ui/documents/put', async (page, watch) => {
    watch.expect(/400 \(Bad Request\)/);
    await page.getByLabel('Url of the document').fill('http://api.company.com/users/7');
    await page.getByLabel('Document', { exact: true }).fill('{"name": "no version"}');
    await page.getByRole('button', { name: 'Put the document' }).click();
    await page.locator('#document-error:visible').waitFor();
    assert.match(await page.locator('#document-error').innerText(), /version/);
    await watch.check();
    await page.getByLabel('Document', { exact: true }).fill('{"version": 1}');
    await page.getByRole('button', { name: 'Put the document' }).click();
    await page.getByRole('status').getByText('is created').waitFor();
    await until('the client is told', () => receiver.told('/ok/7').some(({ body }) => JSON.parse(body).action === 'create'));
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByText('Every client that has it is told').waitFor();
    await watch.picture('document-delete');
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByRole('status').getByText('is deleted').waitFor();
    await page.getByRole('heading', { name: 'Tombstone' }).waitFor();
    await until('the client is told', () => receiver.told('/ok/7').some(({ body }) => JSON.parse(body).action === 'delete'));
    await watch.check();
  });
});

test('explain takes a document and a subscription, and says what is wrong with either', async () => {
  await world();
  await visit('/ui/explain', async (page, watch) => {
    watch.expect(/400 \(Bad Request\)/);
    await watch.check();
    await page.getByLabel('Document').fill('http://api.company.com/users/1');
    await page.getByLabel('Subscription', { exact: true }).fill('sub_nobody');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.locator('#subscription-error:visible').waitFor();
    await page.getByLabel('Subscription', { exact: true }).fill(clients.ok.id);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: 'the client has the newest state' }).waitFor();
    await watch.check();
  });
});

test('cluster and settings show the node and what it runs with', async () => {
  await world();
  await visit('/ui/cluster', async (page, watch) => {
    await page.getByText('Up for').waitFor();
    await watch.check();
    await watch.picture('cluster');
    await page.getByRole('link', { name: 'Settings' }).click();
    const row = page.getByRole('row', { name: /failing-after/ });
    await row.getByText('FLARE_DELIVERY_FAILING_AFTER').waitFor();
    assert.match(await page.getByRole('row', { name: /^secret-key / }).innerText(), /redacted/);
    assert.ok(!(await page.content()).includes(KEY), 'the key is nowhere on the page');
    await watch.check();
    await watch.picture('settings');
  });
});

test('colours follow the system until someone chooses, and the choice stays', async () => {
  const theme = (page) => page.evaluate(() => document.documentElement.dataset.bsTheme);
  await visit('/ui', async (page) => {
    assert.equal(await theme(page), 'dark');
    await page.getByRole('button', { name: 'Light' }).click();
    assert.equal(await theme(page), 'light');
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.waitForURL('**/ui/settings');
    assert.equal(await theme(page), 'light');
    await page.reload();
    assert.equal(await theme(page), 'light');
    await page.getByRole('button', { name: 'As the system' }).click();
    assert.equal(await theme(page), 'dark');
  }, { scheme: 'dark' });
});

test('the menu of a phone opens and closes, and the keyboard reaches the content first', async () => {
  await visit('/ui/settings', async (page, watch) => {
    const link = page.getByRole('link', { name: 'Resources', exact: true });
    assert.equal(await link.isVisible(), false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.waitFor();
    await watch.check();
    await watch.picture('menu');
    await page.goto('/ui/settings');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
    await page.keyboard.press('Enter');
    await until('the content has the focus', () => page.evaluate(() => document.activeElement.id === 'content'));
  }, { width: 'narrow' });
});

test('a page that does not exist says so as a page', async () => {
  await visit('/ui/settings', async (page, watch) => {
    watch.expect(/404 \(Not Found\)/);
    await page.goto('/ui/nowhere');
    await page.getByText('there is no page at /ui/nowhere').waitFor();
    await watch.check();
  });
});

test('another site cannot send our forms', async () => {
  const send = (headers) => fetch(`${flare.origin}/ui/resources/new`, { method: 'POST', headers, body: 'endpoint=x' });
  assert.equal((await send({ 'sec-fetch-site': 'cross-site' })).status, 403);
  assert.equal((await send({ origin: 'http://evil.example' })).status, 403);
  assert.equal((await send({})).status, 403);
  assert.equal((await send({ origin: flare.origin })).status, 400, 'the form is looked at, and it is wrong');
});

test('the first page is small, and its assets are kept', async () => {
  const response = await fetch(`${flare.origin}/ui`);
  const html = await response.text();
  assert.match(response.headers.get('content-security-policy'), /default-src 'self'/);
  assert.doesNotMatch(html, /<script(?![^>]*src=)|\sstyle=|\son[a-z]+=/, 'nothing that the policy forbids');
  let bytes = html.length;
  for (const [, path] of html.matchAll(/(?:href|src)="(\/ui\/assets\/[^"]+)"/g)) {
    const packed = await fetch(flare.origin + path, { headers: { 'accept-encoding': 'gzip' } });
    assert.match(packed.headers.get('cache-control'), /immutable/);
    const length = Number(packed.headers.get('content-length'));
    assert.ok(length > 0);
    bytes += length;
    await packed.arrayBuffer();
  }
  assert.ok(bytes < 250_000, `${bytes} bytes`);
});
