// What was typed and is wrong: where the reader is taken, what is said and where, and what stays.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from './support/flare.mjs';
import { World, onPage } from './support/world.mjs';

let world;

before(async () => {
  world = await World.begin();
  await world.track();
});

after(() => world?.end());

/** Whether an element is within the window. */
const inSight = (page, locator) =>
  locator.boundingBox().then((box) => box !== null && box.y >= 0 && box.y + box.height <= page.viewportSize().height);

test('a wrong field of a long form is scrolled to and focused, and a summary stands beside the button', async () => {
  for (const width of ['wide', 'narrow']) {
    await onPage(world, { width }, async (page, watch) => {
      watch.expect(/400/);
      await page.goto(`/ui/resources/${world.resource.id}/subscriptions/new`);
      await page.getByLabel('Url', { exact: true }).fill(world.receiver.url('/long/{nobody}'));
      await page.getByLabel('Headers').fill('X-One: 1');
      await page.getByLabel('Longest wait').fill('2h');
      await page.locator('#trial-document').fill('http://shop.test/products/9');
      await page.getByRole('button', { name: 'Create the subscription' }).click();
      const url = page.getByLabel('Url', { exact: true });
      await page.locator('[id="endpoint.url-error"]:visible').waitFor();
      await until('the field has the focus', () => url.evaluate((field) => document.activeElement === field));
      await until('the field is in sight', () => inSight(page, url));
      const summary = page.locator('.form-summary');
      assert.match(await summary.innerText(), /Not done yet: .*nobody/s);
      const beside = await summary.evaluate((one) => one.nextElementSibling.textContent);
      assert.match(beside, /Create the subscription/);
      // What was typed stays, also what only tries something out.
      assert.equal(await url.inputValue(), world.receiver.url('/long/{nobody}'));
      assert.equal(await page.getByLabel('Headers').inputValue(), 'X-One: 1');
      assert.equal(await page.getByLabel('Longest wait').inputValue(), '2h');
      assert.equal(await page.locator('#trial-document').inputValue(), 'http://shop.test/products/9');
      await watch.check();
      await watch.picture('subscription-refused');
      // From the summary one gets back to the field.
      await page.getByLabel('Longest wait').focus();
      await summary.getByRole('link').click();
      await until('the field has the focus again', () => url.evaluate((field) => document.activeElement === field));
      await until('the field is in sight again', () => inSight(page, url));
    });
  }
});

test('a wrong field that is folded away is unfolded', () =>
  onPage(world, {}, async (page, watch) => {
    watch.expect(/400/);
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions/new`);
    await page.getByLabel('Url', { exact: true }).fill(world.receiver.url('/folded/{id}'));
    await page.getByText('Other urls or methods').click();
    await page.getByLabel('Url of deletes').fill('http://nowhere/{nobody}');
    await page.getByRole('button', { name: 'Create the subscription' }).click();
    await page.locator('.form-summary').waitFor();
    const field = page.getByLabel('Url of deletes');
    await until('it has the focus', () => field.evaluate((one) => document.activeElement === one));
    assert.ok(await field.isVisible());
  }));

test('a form without a script focuses the wrong field by itself', async () => {
  const body = new URLSearchParams({ endpoint: 'http://shop.test/items', 'change.field': 'v' });
  const answer = await fetch(`${world.flare.origin}/ui/resources/new`, {
    method: 'POST', headers: { origin: world.flare.origin, 'content-type': 'application/x-www-form-urlencoded' }, body,
  });
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /<input[^>]*id="endpoint"[^>]* autofocus>/);
});

test('a filter is checked while it is typed, by the checker of the API', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions/new`);
    const asked = [];
    page.on('request', (request) => request.url().includes('/filters/test') && asked.push(request.postData()));
    const filter = page.getByLabel('Filter');
    await filter.pressSequentially('document.quantity >', { delay: 20 });
    const error = page.locator('#filter-error');
    await error.getByText(/filter: /).waitFor();
    assert.equal(await filter.getAttribute('aria-invalid'), 'true');
    assert.ok(await filter.evaluate((field) => document.activeElement === field), 'typing goes on');
    assert.ok(asked.length < 5, `not at every key: ${asked.length} times`);
    await watch.check();
    await filter.pressSequentially(' 5');
    await until('nothing is wrong any more', async () => (await filter.getAttribute('aria-invalid')) === null);
    assert.equal(await error.innerText(), '');
    // A field that this document does not have is no mistake of the expression.
    await filter.fill('document.nobody.knows == 1');
    await page.getByLabel('When', { exact: true }).fill("action == 'update' &&");
    await page.locator('#when-error').getByText(/when: /).waitFor();
    assert.equal(await filter.getAttribute('aria-invalid'), null);
  }));

test('credentials in headers are redacted, and stay what they are when something else is changed', () =>
  onPage(world, {}, async (page, watch) => {
    const headers = { Authorization: ['Bearer hunter2'], 'X-Api-Key': ['k-123'], 'X-Plain': ['seen'] };
    const made = await world.subscribe('/masked/{id}', { endpoint: { headers } });
    const current = async () => {
      await world.flare.api('POST', `/resources/${world.resource.id}/subscriptions/${made.id}/test`, {});
      const { authorization, 'x-api-key': key, 'x-plain': plain } = world.receiver.told('/masked/').at(-1).headers;
      return { Authorization: [authorization], 'X-Api-Key': [key], 'X-Plain': [plain] };
    };
    for (const path of ['', '/edit', '/edit?view=json']) {
      await page.goto(`/ui/subscriptions/${made.id}${path}`);
      const html = await page.content();
      assert.ok(!html.includes('hunter2') && !html.includes('k-123'), `not on ${path}`);
      assert.ok(html.includes('seen') && html.includes('[redacted]'), path);
    }
    await page.goto(`/ui/subscriptions/${made.id}/edit`);
    await watch.check();
    await page.getByLabel('Timeout').fill('9s');
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.getByText('The settings are changed').waitFor();
    assert.deepEqual(await current(), headers);
    await page.goto(`/ui/subscriptions/${made.id}/edit`);
    const typed = await page.getByLabel('Headers').inputValue();
    await page.getByLabel('Headers').fill(typed.replace('Authorization: [redacted]', 'Authorization: Bearer new'));
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.getByText('The settings are changed').waitFor();
    assert.deepEqual(await current(), { ...headers, Authorization: ['Bearer new'] });
    watch.expect(/400/);
    await page.goto(`/ui/subscriptions/${made.id}/edit`);
    await page.getByLabel('Headers').fill('X-Other-Token: [redacted]');
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.locator('[id="endpoint.headers-error"]').getByText('stands for a value that is kept').waitFor();
  }));
