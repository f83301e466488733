// The pages of subscriptions: found, created, edited, stopped, deleted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from './support/flare.mjs';
import { World, onPage } from './support/world.mjs';

let world, ok, fail, filtered;

before(async () => {
  world = await World.begin();
  await world.track();
  ok = await world.subscribe('/ok/{id}');
  fail = await world.subscribe('/fail/{id}', { delivery: { retry: { interval: '1h' } } });
  filtered = await world.subscribe('/filtered/{id}', { filter: 'document.quantity > 5' });
  for (let id = 1; id <= 20; id++) await world.put(id, 1, { quantity: id });
  await world.flare.until(ok, (status) => status.delivered === 20);
  await world.flare.until(filtered, (status) => status.delivered === 15);
  await world.flare.until(fail, (status) => status.status === 'failing');
});

after(() => world?.end());

test('the list shows every subscription and finds them by words and state', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto('/ui/subscriptions');
    assert.equal(await page.locator('tbody tr').count(), 3);
    await watch.check();
    await watch.picture('subscriptions');
    await page.getByLabel('Search').fill('FILTERED');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.waitForURL(/q=FILTERED/);
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.goto('/ui/subscriptions?state=failing');
    assert.match(await page.locator('tbody tr').innerText(), /\/fail\//);
    await page.goto('/ui/subscriptions?state=paused');
    await page.getByText('None is like that').waitFor();
    await watch.check();
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions?limit=2`);
    assert.equal(await page.locator('tbody tr').count(), 2);
    await page.getByRole('link', { name: 'Next' }).click();
    await page.waitForURL(/offset=2/);
    assert.equal(await page.locator('tbody tr').count(), 1);
  }));

test('a page of a subscription that is not there says so', () =>
  onPage(world, {}, async (page, watch) => {
    watch.expect(/404/);
    const answer = await page.goto('/ui/subscriptions/sub_nobody');
    assert.equal(answer.status(), 404);
    await page.getByText('there is no subscription sub_nobody').waitFor();
    await watch.check();
  }));

test('a form has the words of the API beside the field that they are about, and both views are of one draft', () =>
  onPage(world, {}, async (page, watch) => {
    watch.expect(/400/);
    await page.goto('/ui/subscriptions/new');
    await page.waitForURL(/\/subscriptions\/new$/);
    await page.getByLabel('Url', { exact: true }).fill(world.receiver.url('/made/{nobody}'));
    await page.getByLabel('Requests at once').fill('many');
    await page.getByRole('button', { name: 'Create the subscription' }).click();
    const concurrency = page.locator('[id="delivery.concurrency-error"]');
    await concurrency.waitFor();
    assert.match(await concurrency.innerText(), /many/);
    await page.getByLabel('Requests at once').fill('4');
    // The Enter key saves, though other buttons stand before.
    await page.getByLabel('Requests at once').press('Enter');
    const url = page.locator('[id="endpoint.url-error"]');
    await url.waitFor();
    assert.match(await url.innerText(), /nobody/);
    assert.equal(await page.getByLabel('Url', { exact: true }).getAttribute('aria-invalid'), 'true');
    await watch.check();
    await page.getByLabel('Headers').fill('X-One: 1\nX-One: 2');
    await page.getByRole('button', { name: 'JSON', exact: true }).click();
    const json = page.getByLabel('The subscription, as the API takes it');
    await json.waitFor();
    const draft = JSON.parse(await json.inputValue());
    assert.deepEqual(draft.endpoint.headers, { 'X-One': ['1', '2'] });
    assert.equal(draft.delivery.concurrency, 4);
    await watch.check();
    await watch.picture('subscription-json');
    await json.fill('{"endpoint": ');
    await page.getByRole('button', { name: 'Form', exact: true }).click();
    await page.locator('#json-error').getByText('is not JSON').waitFor();
    draft.endpoint.url = world.receiver.url('/made/{id}');
    draft.delivery.rateLimit = { quantity: 100, interval: '1s', burst: 5 };
    await json.fill(JSON.stringify(draft));
    await page.getByRole('button', { name: 'Form', exact: true }).click();
    await page.getByLabel('At most so many').waitFor();
    assert.equal(await page.getByLabel('At most so many').inputValue(), '100');
    assert.equal(await page.getByLabel('Headers').inputValue(), 'X-One: 1\nX-One: 2');
    await page.getByRole('button', { name: 'Create the subscription' }).click();
    await page.getByRole('heading', { name: 'The secret, shown this once' }).waitFor();
    const secret = await page.locator('#fresh-secret').innerText();
    assert.match(secret, /^whsec_/);
    await page.getByRole('button', { name: 'Copy the secret' }).click();
    await until('the secret is copied', async () => (await page.evaluate(() => navigator.clipboard.readText())) === secret);
    await watch.check();
    await page.getByRole('link', { name: 'To the subscription' }).click();
    await page.getByRole('heading', { level: 1, name: '/made/{id}' }).waitFor();
    assert.ok(!(await page.content()).includes(secret));
    await page.goBack();
    await page.getByRole('heading', { name: 'New subscription' }).or(page.getByRole('heading', { name: 'Subscription created' })).first().waitFor();
    assert.ok(!(await page.content()).includes(secret), 'the secret is not kept for going back');
    const { subscriptions } = await world.flare.api('GET', `/resources/${world.resource.id}/subscriptions`);
    const made = subscriptions.find((one) => one.endpoint.url.includes('/made/'));
    assert.equal(made.delivery.rateLimit.burst, 5, 'what no field shows is carried along');
    await world.flare.api('DELETE', `/resources/${world.resource.id}/subscriptions/${made.id}`);
  }));

test('a retry policy is drawn while it is typed, and what is wrong with it is said', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions/new`);
    const preview = page.locator('#retry-preview');
    await preview.getByText('Given up after 50 attempts').waitFor();
    await page.getByLabel('Attempts', { exact: true }).fill('5');
    await page.getByLabel('First wait', { exact: true }).fill('1m');
    await page.getByLabel('First wait', { exact: true }).press('Tab');
    await preview.getByText('Given up after 5 attempts').waitFor();
    assert.equal(await preview.locator('svg rect').count(), 4);
    await watch.check();
    await watch.picture('subscription-new');
    await page.getByLabel('Ratio').fill('0.1');
    await page.getByRole('button', { name: 'Show when it would try' }).click();
    await preview.getByText('ratio').waitFor();
    await page.getByLabel('Ratio').fill('2');
    await page.getByRole('button', { name: 'Show when it would try' }).click();
    await preview.getByText('Given up after 5 attempts').waitFor();
    assert.equal(await page.getByLabel('First wait', { exact: true }).inputValue(), '1m', 'the rest of the form stays');
  }));

test('expressions are tried on a document that is there', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions/new`);
    const trial = page.locator('#trial');
    const attempt = async (words) => {
      await page.getByRole('button', { name: 'Try it' }).click();
      await trial.getByText(words).waitFor();
    };
    await attempt('give the url of a document');
    await page.getByLabel('Document', { exact: true }).fill('http://shop.test/products/3');
    await attempt('there is no expression yet');
    await page.getByLabel('Filter').fill('document.quantity > 5');
    await attempt('the client is not to have this document');
    await page.getByLabel('When', { exact: true }).fill("wildcards.id == '3' && action == 'create'");
    await attempt('the client is told');
    await watch.check();
    await page.getByLabel('Filter').fill('document.quantity >');
    await attempt('The expression is not valid');
    await page.getByLabel('Document', { exact: true }).fill('http://shop.test/products/nobody');
    await attempt('is not a document of this resource');
  }));

test('settings are changed, and only what differs', () =>
  onPage(world, {}, async (page, watch) => {
    watch.expect(/400/);
    await page.goto(`/ui/subscriptions/${ok.id}/edit`);
    await watch.check();
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.getByText('Nothing was different').waitFor();
    await page.goto(`/ui/subscriptions/${ok.id}/edit`);
    await page.getByLabel('Timeout').fill('soon');
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.locator('[id="delivery.timeout-error"]').waitFor();
    await page.getByLabel('Timeout').fill('7s');
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.getByText('The settings are changed').waitFor();
    const changed = await world.flare.api('GET', `/subscriptions/${ok.id}`);
    assert.equal(changed.delivery.timeout, '7s');
    await page.goto(`/ui/subscriptions/${ok.id}/edit?view=json`);
    const json = page.getByLabel('The subscription, as the API takes it');
    const draft = JSON.parse(await json.inputValue());
    delete draft.delivery;
    await json.fill(JSON.stringify({ ...draft, surprise: 1 }));
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.getByText('surprise').first().waitFor();
    await json.fill(JSON.stringify(draft));
    await page.getByRole('button', { name: 'Save the settings' }).click();
    await page.getByText('The settings are changed').waitFor();
    assert.equal((await world.flare.api('GET', `/subscriptions/${ok.id}`)).delivery.timeout, '15s');
  }));

test('the page of a subscription moves with the traffic', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto(`/ui/subscriptions/${ok.id}`);
    const delivered = page.locator('#now .card-body', { hasText: 'Delivered' });
    await delivered.getByText('20', { exact: true }).waitFor();
    await world.put(1, 2, { quantity: 1 });
    await delivered.getByText('21', { exact: true }).waitFor();
    await page.locator('svg.latency rect').first().waitFor({ state: 'attached' });
    await watch.check();
    await watch.picture('subscription');
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions/${fail.id}`);
    await page.getByRole('heading', { name: 'What the client lacks' }).waitFor();
    await page.getByText('answered 500').or(page.getByText('500')).first().waitFor();
    await watch.check();
    await watch.picture('subscription-failing');
  }));

test('a subscription is paused, resumed and deleted by the keyboard, and each question says what will happen', () =>
  onPage(world, {}, async (page, watch) => {
    const passing = await world.subscribe('/passing/{id}');
    await page.goto(`/ui/subscriptions/${passing.id}`);
    const press = async (name) => {
      await page.getByRole('button', { name, exact: true }).focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      return dialog;
    };
    let dialog = await press('Pause');
    assert.match(await dialog.innerText(), /0 documents are lagging/);
    await watch.check();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    dialog = await press('Pause');
    await dialog.getByRole('button', { name: 'Pause it' }).press('Enter');
    await page.getByText('Nothing is sent until it is resumed').waitFor();
    await world.put(7, 2);
    await world.flare.until(passing, (status) => status.status === 'paused' && status.feed.lagging === 1);
    await page.reload();
    dialog = await press('Resume');
    assert.match(await dialog.innerText(), /1 document is lagging/);
    await dialog.getByRole('button', { name: 'Resume it' }).press('Enter');
    await page.getByText('Resumed. What changed').waitFor();
    await world.receiver.untilTold('/passing/7', 1);
    await world.flare.until(passing, (status) => status.feed.held === 1);
    await page.reload();
    dialog = await press('Delete');
    assert.match(await dialog.innerText(), /it has 1 document/);
    await watch.picture('subscription-delete');
    await dialog.getByRole('button', { name: 'Delete it' }).press('Enter');
    await page.getByText('is deleted').waitFor();
    watch.expect(/404/);
    assert.equal((await page.goto(`/ui/subscriptions/${passing.id}`)).status(), 404);
  }));

test('where nothing is yet, pages say what would be', async () => {
  const empty = await World.begin();
  try {
    await onPage(empty, {}, async (page, watch) => {
      await page.goto('/ui/subscriptions');
      await page.getByText('First a resource, then subscriptions').waitFor();
      await watch.check();
      await page.goto('/ui/subscriptions/new');
      await page.getByText('First a resource, then subscriptions').waitFor();
      await page.goto('/ui/dead-letters');
      await page.getByText('Nothing was given up').waitFor();
      await watch.check();
      await empty.track();
      await empty.flare.api('POST', '/resources', { endpoint: 'http://shop.test/orders/{id}', change: { field: 'v' } });
      await page.goto('/ui/subscriptions');
      await page.getByText('Nobody is told yet').waitFor();
      await watch.check();
      await watch.picture('subscriptions-empty');
      await page.getByRole('link', { name: 'New subscription' }).click();
      await page.getByText('To which?').waitFor();
      await watch.check();
      await page.getByLabel('Search').fill('orders');
      await page.getByRole('button', { name: 'Find' }).click();
      await page.waitForURL(/q=orders/);
      assert.equal(await page.locator('.list-group-item').count(), 1);
      await page.locator('.list-group-item').click();
      await page.getByRole('button', { name: 'Create the subscription' }).waitFor();
    });
  } finally {
    await empty.end();
  }
});
