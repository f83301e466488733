// The pages about what was sent to a client: attempts, dead letters, replays, tests, secrets, and a client that asks.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from './support/flare.mjs';
import { World, onPage } from './support/world.mjs';

let world, ok, slow, broken;

/** Given up after the second attempt. */
const IMPATIENT = { retry: { quantity: 2, interval: '10ms', maxInterval: '10ms' } };

before(async () => {
  world = await World.begin();
  await world.track();
  ok = await world.subscribe('/ok/{id}');
  slow = await world.subscribe('/slow/{id}', { delivery: { concurrency: 1 } });
  broken = await world.subscribe('/broken/{id}', { delivery: IMPATIENT });
  world.receiver.answer('/broken', 503, '{"message":"the shelf is being repaired"}');
  for (let id = 1; id <= 6; id++) await world.put(id, 1);
  await world.flare.until(ok, (status) => status.delivered === 6);
  await world.flare.until(slow, (status) => status.delivered === 6);
  await world.flare.until(broken, (status) => status.feed.deadLetters === 6);
});

after(() => world?.end());

test('attempts appear as they end, are found by outcome, and one is shown whole', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/subscriptions/${slow.id}/attempts`);
    assert.equal(await page.locator('tbody tr').count(), 6);
    await world.put('fresh', 1);
    await page.getByText('http://shop.test/products/fresh').waitFor();
    await watch.check();
    await watch.picture('attempts');
    await page.goto(`/ui/subscriptions/${broken.id}/attempts`);
    await page.getByLabel('Outcome').selectOption('delivered');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('None is like that').waitFor();
    await page.goto(`/ui/subscriptions/${broken.id}/attempts?outcome=failed&document=http://shop.test/products/2`);
    assert.equal(await page.locator('tbody tr').count(), 2);
    await page.locator('tbody a').first().click();
    await page.getByText('the shelf is being repaired').waitFor();
    const request = page.locator('.card', { has: page.getByRole('heading', { name: 'Request' }) });
    assert.match(await request.innerText(), /POST .*\/broken\/2[^]*flare-document[^]*"name": "Product 2"/i);
    assert.match(await request.innerText(), /webhook-signature:\s*\[redacted\]/i);
    const answer = page.locator('.card', { has: page.getByRole('heading', { name: 'Answer' }) });
    assert.match(await answer.innerText(), /HTTP 503/);
    assert.ok((await page.locator('svg.phases rect').count()) >= 1);
    await watch.check();
    await watch.picture('attempt');
  }));

test('a test shows what was sent and what came back, and what is wrong with it', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/subscriptions/${ok.id}/test`);
    await watch.check();
    const send = page.getByRole('button', { name: 'Send the test' });
    await send.click();
    await page.locator('.badge.outcome-delivered').waitFor();
    assert.match(await page.locator('#test').innerText(), /"sample": true/);
    assert.match(await page.locator('#test').innerText(), /flare-test:\s*true/i);
    await watch.check();
    await watch.picture('test');
    watch.expect(/400/);
    await page.getByLabel('Document').fill('http://shop.test/products/nobody');
    await send.click();
    await page.locator('#document-error').getByText('is not a document of this resource').waitFor();
    await page.getByLabel('Document').fill('http://shop.test/products/3');
    await page.getByLabel('Action').selectOption('delete');
    await send.click();
    await page.getByText('delete of http://shop.test/products/3').waitFor();
    assert.equal(world.receiver.told('/ok/3').at(-1).headers['flare-action'], 'delete');
    await page.goto(`/ui/subscriptions/${broken.id}/test`);
    await send.click();
    await page.locator('.badge.outcome-failed').waitFor();
    await page.getByText('the shelf is being repaired').waitFor();
  }));

test('a secret is rotated, and the new one is shown once', () =>
  onPage(world, {}, async (page, watch) => {
    watch.expect(/400/);
    await page.goto(`/ui/subscriptions/${ok.id}/secret`);
    await watch.check();
    const rotate = async () => {
      await page.getByRole('button', { name: 'Rotate the secret' }).click();
      const dialog = page.getByRole('dialog');
      assert.match(await dialog.innerText(), /shown once/);
      await dialog.getByRole('button', { name: 'Rotate it' }).click();
    };
    await page.getByLabel('Overlap').fill('99999h');
    await rotate();
    await page.locator('#overlap-error').getByText('auth.maximum-secret-overlap').waitFor();
    await page.getByLabel('Overlap').fill('1h');
    await rotate();
    await page.locator('#fresh-secret').waitFor();
    const secret = await page.locator('#fresh-secret').innerText();
    assert.match(secret, /^whsec_/);
    assert.equal(await page.locator('#secret li').count(), 2, 'both sign for a while');
    await watch.check();
    await watch.picture('secret');
    await page.reload();
    assert.ok(!(await page.content()).includes(secret));
    await world.put('signed', 1);
    await world.receiver.untilTold('/ok/signed', 1);
    assert.equal(world.receiver.told('/ok/signed')[0].headers['webhook-signature'].split(' ').length, 2);
  }));

test('a replay is asked for in every way, and its progress is seen', () =>
  onPage(world, {}, async (page, watch) => {
    const documents = 6;
    await world.flare.until(slow, (status) => status.feed.lagging === 0);
    await page.goto(`/ui/subscriptions/${slow.id}/replays`);
    await page.getByText('A replay appears here').waitFor();
    await watch.check();
    const begin = async () => {
      await page.getByRole('button', { name: 'Replay', exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Begin it' }).click();
    };
    const done = (count) => page.locator('#replays .badge', { hasText: 'done' }).nth(count - 1).waitFor();
    const before = world.receiver.told('/slow').length;
    world.receiver.delay = 3000;
    await begin();
    await page.getByText('has begun').waitFor();
    await page.locator('#replays .badge', { hasText: 'running' }).waitFor();
    await watch.picture('replay');
    world.receiver.delay = 0;
    await done(1);
    assert.ok(world.receiver.told('/slow').length >= before + documents);
    assert.ok(world.receiver.told('/slow').at(-1).headers['flare-replay']);
    await watch.check();
    watch.expect(/400/);
    await page.getByLabel('Its url').fill('http://shop.test/products/nobody');
    assert.ok(await page.getByLabel('One document').isChecked(), 'typing chooses');
    await begin();
    await page.locator('#document-error').getByText('is not a document of this resource').waitFor();
    await page.getByLabel('Its url').fill('http://shop.test/products/2');
    await begin();
    await done(2);
    await page.getByLabel('What changed since a moment').check();
    await begin();
    await page.locator('#since-error').waitFor();
    assert.match(await page.locator('#since-error').innerText(), /since/);
    await page.getByLabel('Since, in UTC').fill('2020-01-01T00:00');
    await begin();
    await done(3);
    await page.getByLabel('What lags').check();
    await begin();
    await done(4);
    await page.getByLabel(/^Dead letters/).check();
    await begin();
    await done(5);
  }));

test('dead letters are inspected, replayed and discarded, one and all', () =>
  onPage(world, {}, async (page, watch) => {
    await world.flare.until(broken, (status) => status.feed.waiting === 0 && status.feed.inFlight === 0);
    const { feed } = await world.flare.api('GET', `/resources/${world.resource.id}/subscriptions/${broken.id}/status`);
    let left = feed.deadLetters;
    await page.goto('/ui/dead-letters');
    await page.getByRole('link', { name: '/broken/{id}' }).waitFor();
    await watch.check();
    await watch.picture('dead-letters-all');
    await page.getByRole('link', { name: '/broken/{id}' }).click();
    await page.getByText('the shelf is being repaired').first().waitFor();
    await watch.check();
    await watch.picture('dead-letters');
    await page.getByRole('button', { name: 'Discard http://shop.test/products/1' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Discard it' }).click();
    await page.getByText('1 dead letter is dropped').waitFor();
    left -= 1;
    await world.flare.until(broken, (status) => status.feed.deadLetters === left);
    world.receiver.answer('/broken', 200);
    await page.getByRole('button', { name: 'Replay http://shop.test/products/2' }).click();
    await page.getByText('1 document is sent again').waitFor();
    left -= 1;
    await world.flare.until(broken, (status) => status.feed.deadLetters === left);
    world.receiver.answer('/broken', 503);
    await page.goto(`/ui/subscriptions/${broken.id}/dead-letters`);
    world.receiver.answer('/broken', 200);
    await page.getByRole('button', { name: 'Replay all' }).click();
    assert.match(await page.getByRole('dialog').innerText(), new RegExp(`${left} documents`));
    await page.getByRole('dialog').getByRole('button', { name: 'Replay them' }).click();
    await page.getByText('sent again').first().waitFor();
    await world.flare.until(broken, (status) => status.feed.deadLetters === 0);
    world.receiver.answer('/broken', 503);
    await Promise.all([world.put('x', 1), world.put('y', 1)]);
    await world.flare.until(broken, (status) => status.feed.deadLetters === 2);
    await page.goto(`/ui/subscriptions/${broken.id}/dead-letters`);
    await page.getByRole('button', { name: 'Discard all' }).click();
    assert.match(await page.getByRole('dialog').innerText(), /2 documents are forgotten/);
    await page.getByRole('dialog').getByRole('button', { name: 'Discard them' }).click();
    await page.getByText('2 dead letters are dropped').waitFor();
    await page.getByText('Nothing was given up').waitFor();
    await watch.check();
  }));

test('a client that asks is told how, and its leases are seen', () =>
  onPage(world, {}, async (page, watch) => {
    const passive = await world.subscribe('/asks/{id}', { mode: 'passive' });
    await world.put('asked', 1);
    await page.goto(`/ui/subscriptions/${passive.id}`);
    const command = await page.locator('#reserve').innerText();
    const path = new URL(command.match(/'([^']+)'/)[1]);
    assert.equal(path.origin, world.flare.origin);
    const { messages } = await world.flare.api('POST', path.pathname + path.search);
    assert.equal(messages.length, 1);
    const leased = page.locator('#now .card-body', { hasText: 'Leased' });
    await leased.getByText('1', { exact: true }).waitFor();
    await page.locator('#now').getByRole('link', { name: 'http://shop.test/products/asked', exact: true }).waitFor();
    await watch.check();
    await watch.picture('passive');
    const settle = (await page.locator('#settle').innerText()).match(/-d '(.+)'/)[1];
    const body = JSON.parse(settle.replace('…', messages[0].lease));
    const settled = await world.flare.api('POST', path.pathname.replace('reserve', 'settle'), body);
    assert.equal(settled.messages?.[0]?.outcome ?? settled.outcomes?.[0], 'settled');
    await leased.getByText('0', { exact: true }).waitFor();
  }));

test('leases are listed, and ended one by one or all', () =>
  onPage(world, {}, async (page, watch) => {
    const passive = await world.subscribe('/pulls/{id}', { mode: 'passive' });
    for (const name of ['first', 'second', 'third']) await world.put(name, 1);
    const path = `/resources/${world.resource.id}/subscriptions/${passive.id}`;
    let taken = 0;
    while (taken < 3) {
      const { messages } = await world.flare.api('POST', `${path}/reserve?quantity=9&wait=5s&lease=1h`);
      taken += messages.length;
    }
    await page.goto(`/ui/subscriptions/${passive.id}`);
    await page.getByRole('navigation', { name: 'Of this subscription' }).getByRole('link', { name: 'Leases' }).click();
    await page.getByRole('link', { name: 'http://shop.test/products/second', exact: true }).waitFor();
    await watch.check();
    await page.getByRole('button', { name: 'End it (http://shop.test/products/second)' }).click();
    await page.getByText('1 lease is ended').waitFor();
    await page.getByRole('button', { name: 'End all' }).click();
    assert.match(await page.getByRole('dialog').innerText(), /2 documents are on a lease/);
    await page.getByRole('dialog').getByRole('button', { name: 'End them' }).click();
    await page.getByText('Nothing is out').waitFor();
    await watch.check();
  }));

test('on a phone the tabs are shown from where the present one is', async () => {
  await onPage(world, { width: 'narrow' }, async (page) => {
    for (const [path, name] of [['/attempts', 'Attempts'], ['/edit', 'Settings']]) {
      await page.goto(`/ui/subscriptions/${ok.id}${path}`);
      const tab = page.locator('.tab-strip .active', { hasText: name });
      await until(`${name} is in sight`, async () => {
        const { x, width } = await tab.boundingBox();
        return x >= 0 && x + width <= page.viewportSize().width;
      });
    }
  });
});
