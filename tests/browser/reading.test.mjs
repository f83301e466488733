// What a reader sees: times of their own zone, links instead of addresses to copy, a page that says that it is old.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, open } from './support/browser.mjs';
import { Flare, until } from './support/flare.mjs';
import { World, onPage } from './support/world.mjs';

let world, ok, broken;

/** Given up at once. */
const IMPATIENT = { retry: { quantity: 1 } };

before(async () => {
  world = await World.begin();
  await world.track();
  ok = await world.subscribe('/ok/{id}');
  broken = await world.subscribe('/broken/{id}', { delivery: IMPATIENT, filter: 'has(document.broken)' });
  world.receiver.answer('/broken/odd', 422, '{"message":"no such shelf"}');
  world.receiver.answer('/broken', 503, '{"message":"the shelf is being repaired"}');
  for (let id = 1; id <= 57; id++) await world.put(id, 1);
  for (const id of ['odd-1', 'odd-2', 'even']) await world.put(id, 1, { broken: true });
  await world.flare.until(ok, (status) => status.delivered === 60);
  await world.flare.until(broken, (status) => status.feed.deadLetters === 3);
});

after(() => world?.end());

test('times are in the zone of the reader, with its name, and UTC is one hover away', async () => {
  await onPage(world, { timezoneId: 'Asia/Kolkata' }, async (page, watch) => {
    await page.goto(`/ui/resources/${world.resource.id}`);
    const time = page.locator('dd time');
    const said = new Date(await time.getAttribute('datetime'));
    const shifted = new Date(said.getTime() + 5.5 * 3600_000).toISOString().slice(0, 19).replace('T', ' ');
    assert.equal(await time.innerText(), `${shifted} GMT+5:30`);
    assert.equal(await time.getAttribute('title'), `${said.toISOString().slice(0, 19).replace('T', ' ')} UTC`);
    await watch.check();
    // What moves stays so.
    await page.goto(`/ui/subscriptions/${ok.id}`);
    const ago = page.locator('#now time').first();
    assert.match(await ago.getAttribute('title'), /GMT\+5:30 \(.* UTC\)/);
    await world.put(1, 2);
    await page.locator('#now .card-body', { hasText: 'Delivered' }).getByText('61', { exact: true }).waitFor();
    assert.match(await page.locator('#now time').first().getAttribute('title'), /GMT\+5:30 \(.* UTC\)/);
    // So does what is typed.
    await page.goto(`/ui/subscriptions/${ok.id}/replays`);
    await page.getByLabel('Since, in GMT+5:30').fill('2030-01-01T00:00');
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    const sent = page.waitForRequest((request) => request.method() === 'POST');
    await page.getByRole('dialog').getByRole('button', { name: 'Begin it' }).click();
    assert.match((await sent).postData(), /since\.offset=330/);
    await page.getByText('0 documents').first().waitFor();
  });
  const html = await (await fetch(`${world.flare.origin}/ui/resources/${world.resource.id}`)).text();
  assert.match(html, /<time datetime="[^"]+Z" title="[^"]+ UTC" data-moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC<\/time>/, 'without a script too');
});

test('a page of documents has as many rows as `limit`, and the pages after it have the others', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto('/ui/documents?limit=25');
    const rows = page.locator('tbody tr');
    const seen = new Set();
    for (const expected of [25, 25, 10]) {
      assert.equal(await rows.count(), expected);
      for (const url of await rows.locator('th a').allInnerTexts()) seen.add(url);
      const further = page.getByRole('link', { name: 'Further back' });
      if (await further.count()) {
        const address = page.url();
        await further.click();
        await page.waitForURL((url) => url.href !== address);
      }
    }
    assert.equal(seen.size, 60, 'none twice, none left out');
    watch.expect(/400/);
    assert.equal((await page.goto('/ui/documents?after=nonsense')).status(), 400);
  }));

test('documents in attempts and dead letters are links', () =>
  onPage(world, {}, async (page) => {
    for (const path of ['/attempts', '/dead-letters']) {
      await page.goto(`/ui/subscriptions/${broken.id}${path}`);
      await page.getByRole('link', { name: /^http:\/\/shop\.test\/products\/(odd|even)[-\d]*$/ }).first().click();
      await page.waitForURL(/documents\/show/);
      await page.getByRole('heading', { name: 'Newest state' }).waitFor();
    }
    await page.goto(`/ui/subscriptions/${broken.id}/attempts`);
    await page.locator('tbody td a').first().click();
    await page.getByRole('heading', { name: 'Request' }).waitFor();
    await page.locator('dd').getByRole('link', { name: /shop\.test/ }).waitFor();
  }));

test('explain offers the subscriptions, and takes a part of the url of one', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto('/ui/explain');
    assert.equal(await page.locator('datalist option').count(), 2);
    await page.getByLabel('Document').fill('http://shop.test/products/even');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: 'Whose client?' }).waitFor();
    await watch.check();
    await watch.picture('explain-offers');
    await page.getByRole('link', { name: '/broken/{id}' }).click();
    await page.getByRole('heading', { name: /given up/ }).waitFor();
    await page.getByLabel('Subscription', { exact: true }).fill('/ok/');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('heading', { name: 'the client has the newest state' }).waitFor();
    await watch.check();
  }));

test('what does not fit is on a page of its own, and no page sends its reader to the API', () =>
  onPage(world, {}, async (page, watch) => {
    const waiting = await world.subscribe('/ok2/{id}', { start: 'beginning', mode: 'passive' });
    await world.flare.until(waiting, (status) => status.feed.lagging >= 60);
    await page.goto(`/ui/subscriptions/${waiting.id}`);
    assert.doesNotMatch(await page.locator('main').innerText(), /of the API/);
    await page.getByRole('link', { name: 'All that it lacks' }).click();
    await page.waitForURL(/documents\?lagging=true/);
    assert.equal(await page.locator('tbody tr').count(), 30);
    await watch.check();
    await watch.picture('subscription-documents');
    const first = await page.locator('tbody tr').first().innerText();
    await page.getByRole('link', { name: 'Next' }).click();
    await page.waitForURL(/after=/);
    assert.notEqual(await page.locator('tbody tr').first().innerText(), first);
    await page.getByRole('link', { name: 'All', exact: true }).click();
    await page.getByText('60 documents in all').waitFor();
    await world.put('long', 1, { text: 'x'.repeat(100_000) });
    await page.goto('/ui/documents/show?url=http%3A%2F%2Fshop.test%2Fproducts%2Flong');
    await page.getByRole('link', { name: 'Show all of it' }).click();
    await until('all of it is shown', async () => (await page.locator('pre.content').innerText()).length > 100_000);
    await world.flare.api('DELETE', `/resources/${world.resource.id}/subscriptions/${waiting.id}`);
  }));

test('dead letters are grouped by what went wrong, and replayed as a group', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/subscriptions/${broken.id}/dead-letters`);
    const group = (words) => page.getByRole('row', { name: words });
    const before = (await world.flare.until(broken, (status) => status.feed.waiting === 0)).feed.deadLetters;
    await group(/answered 422/).getByText('2', { exact: true }).waitFor();
    await group(/answered 503/).waitFor();
    await watch.check();
    await watch.picture('dead-letters-groups');
    await group(/answered 422/).getByRole('link').click();
    await page.getByRole('heading', { name: 'Those with: answered 422' }).waitFor();
    assert.equal(await page.locator('.card', { hasText: 'no such shelf' }).count(), 2);
    await watch.check();
    world.receiver.answer('/broken/odd', 200);
    await page.getByRole('button', { name: 'Replay these (answered 422)' }).click();
    await page.getByRole('dialog').getByText('2 documents are sent again').waitFor();
    await watch.check();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay them' }).click();
    await page.getByText('2 documents are sent again').waitFor();
    await world.flare.until(broken, (status) => status.feed.deadLetters === before - 2);
    const again = world.receiver.told('/broken').filter(({ headers }) => headers['flare-replay']);
    assert.deepEqual(again.map(({ path }) => path).sort(), ['/broken/odd-1', '/broken/odd-2']);
  }));

test('the way to a page fits a phone', () =>
  onPage(world, { width: 'narrow' }, async (page, watch) => {
    const long = await world.subscribe(`/${'a-long-way-to-go/'.repeat(12)}{id}`);
    await page.goto(`/ui/subscriptions/${long.id}/attempts`);
    const crumbs = page.locator('.breadcrumb');
    const { height } = await crumbs.boundingBox();
    assert.ok(height < 32, `one line: ${height} px`);
    for (const crumb of await page.locator('.breadcrumb-item').all()) {
      const { x, width } = await crumb.boundingBox();
      assert.ok(x >= 0 && x + width <= 390 && width > 30, `${await crumb.innerText()}: ${x} to ${x + width}`);
    }
    await watch.check();
    await watch.picture('breadcrumbs');
  }));

test('a page that lost its node says so within five seconds, with the time of its numbers, and comes back by itself', async () => {
  const browser = await launch();
  let flare = await Flare.start();
  const { page, watch, context } = await open(browser, flare.origin);
  try {
    watch.expect(/ERR_|Failed to load|EventSource/);
    await page.goto('/ui');
    const lost = page.locator('#lost');
    await page.locator('#deliveries-plot').waitFor();
    assert.equal(await lost.isVisible(), false);
    // One that is stuck keeps its connections open, so nothing but silence tells.
    flare.process.kill('SIGSTOP');
    let since = Date.now();
    await lost.waitFor({ timeout: 5000 });
    assert.ok(Date.now() - since < 5000);
    assert.match(await lost.innerText(), /What you see is of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d /);
    await watch.picture('lost');
    flare.process.kill('SIGCONT');
    await lost.waitFor({ state: 'hidden' });
    // One that is gone.
    const { port } = new URL(flare.origin);
    await page.evaluate(() => (document.body.dataset.mark = 'same page'));
    flare.process.kill('SIGKILL');
    since = Date.now();
    await flare.ended;
    await lost.waitFor({ timeout: 5000 });
    assert.ok(Date.now() - since < 5000);
    const directory = flare.directory;
    flare = await Flare.start({}, { port, directory });
    await lost.waitFor({ state: 'hidden' });
    const resource = await flare.api('POST', '/resources', { endpoint: 'http://shop.test/p/{id}', change: { field: 'v' } });
    assert.ok(resource.id);
    await page.locator('#now dd').getByRole('link', { name: '1', exact: true }).first().waitFor();
    assert.equal(await page.evaluate(() => document.body.dataset.mark), 'same page');
  } finally {
    await context.close();
    await browser.close();
    await flare.stop();
  }
});

test('a page that rarely moves says as soon that it lost its node, and not before', async () => {
  const browser = await launch();
  const flare = await Flare.start({ FLARE_HISTORY_FINE_STEP: '6s' });
  const { page, watch, context } = await open(browser, flare.origin);
  try {
    await page.goto('/ui');
    const lost = page.locator('#lost');
    const from = () => page.locator('#deliveries-plot').getAttribute('data-from');
    await page.evaluate(() => {
      globalThis.alarms = 0;
      new MutationObserver(() => (globalThis.alarms += 1)).observe(document.getElementById('lost'), { attributes: true });
    });
    for (let moves = 0; moves < 2; moves++) {
      const before = await from();
      await until('the page has moved', async () => (await from()) !== before);
    }
    assert.equal(await page.evaluate(() => globalThis.alarms), 0);
    const shown = await page.evaluate(() => Date.now());
    flare.process.kill('SIGSTOP');
    const since = Date.now();
    await lost.waitFor({ timeout: 5000 });
    assert.ok(Date.now() - since < 5000);
    const of = Date.parse(await lost.locator('time').getAttribute('datetime'));
    assert.ok(of <= shown && of > shown - 6000, `the numbers are of ${new Date(of).toISOString()}`);
    flare.process.kill('SIGCONT');
    await lost.waitFor({ state: 'hidden' });
    watch.clean();
  } finally {
    flare.process.kill('SIGCONT');
    await context.close();
    await browser.close();
    await flare.stop();
  }
});
