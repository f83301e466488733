// With authentication: a browser signs in, sees what its token allows, makes tokens and accounts, reads the audit log, and
// signs out.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, open } from './support/browser.mjs';
import { Flare } from './support/flare.mjs';

const OPERATOR = '0123456789abcdef0123456789abcdef-op';

let browser, flare;

before(async () => {
  [browser, flare] = await Promise.all([
    launch(),
    Flare.start({ FLARE_AUTH_MODE: 'token', FLARE_AUTH_OPERATOR_TOKEN: OPERATOR }),
  ]);
});

after(async () => {
  await browser?.close();
  await flare?.stop();
});

/** A request to the API as the operator. */
async function operate(method, path, body, account = 'default') {
  const headers = { authorization: `Bearer ${OPERATOR}`, 'flare-account': account };
  const response = await fetch(flare.origin + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** Runs `story` on a page of a browser of its own. */
async function visit(path, story) {
  const { page, watch, context } = await open(browser, flare.origin);
  try {
    await page.goto(path);
    await story(page, watch, context);
    watch.clean();
  } finally {
    await context.close();
  }
}

async function signIn(page, token, account = '') {
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.getByLabel('Account').fill(account);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('whoever is not signed in is asked, and comes back to where they wanted', async () => {
  await visit('/ui/audit', async (page, watch, context) => {
    await page.waitForURL('**/ui/sign-in?next=*');
    await watch.check();
    await watch.picture('sign-in');
    watch.expect(/401/);
    await signIn(page, 'flare_wrong');
    await page.getByText('the token is not known').waitFor();
    await watch.check();
    await watch.picture('sign-in-refused');
    await signIn(page, OPERATOR);
    await page.waitForURL('**/ui/audit');
    const [cookie] = (await context.cookies()).filter(({ name }) => name === 'flare-session');
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
    assert.equal(await page.evaluate(() => document.cookie.includes('flare-session')), false);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/ui/sign-in');
    await page.goto('/ui');
    await page.waitForURL('**/ui/sign-in?next=*');
  });
});

test('the operator makes an account and a token, and the audit log has both', async () => {
  await visit('/ui/accounts', async (page, watch) => {
    await signIn(page, OPERATOR);
    await page.getByRole('link', { name: 'New account' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Not a name');
    watch.expect(/400/);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByText('small letters').first().waitFor();
    await watch.picture('account-mistake');
    await page.getByRole('textbox', { name: 'Name' }).fill('acme');
    await page.getByLabel('Resources').fill('10');
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByText('There is an account acme.').waitFor();
    await watch.check();
    await watch.picture('accounts');

    await page.getByRole('link', { name: 'Tokens', exact: true }).click();
    await page.getByRole('heading', { name: 'No tokens yet' }).waitFor();
    await page.getByRole('link', { name: 'New token' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('shop');
    await page.getByLabel('origin').check();
    await watch.check();
    await watch.picture('token-new');
    await page.getByRole('button', { name: 'Create the token' }).click();
    const token = await page.locator('#token').innerText();
    assert.match(token, /^flare_[0-9a-z]{38}$/);
    await watch.check();
    await watch.picture('token-created');
    const asked = await fetch(`${flare.origin}/resources`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(asked.status, 200);

    await page.getByRole('link', { name: 'To the tokens' }).click();
    await page.getByRole('rowheader', { name: /shop/ }).waitFor();
    assert.equal((await page.content()).includes(token), false);
    await watch.check();
    await watch.picture('tokens');
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke it' }).click();
    await page.getByText('refused from now on').waitFor();

    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    for (const name of ['createAccount', 'createToken', 'revokeToken']) {
      await page.getByRole('rowheader', { name }).first().waitFor();
    }
    await watch.check();
    await watch.picture('audit');
  });
});

test('a reader sees no buttons to change things, and nothing of another account', async () => {
  await operate('POST', '/accounts', { name: 'tenant' });
  const endpoint = 'http://tenant.test/users/{id}';
  await operate('POST', '/resources', { endpoint, change: { field: 'version' } }, 'tenant');
  const own = 'http://own.test/users/{id}';
  const resource = await operate('POST', '/resources', { endpoint: own, change: { field: 'version' } });
  await operate('POST', `/resources/${resource.id}/subscriptions`, { endpoint: { url: 'http://127.0.0.1:9/{id}' } });
  const { token } = await operate('POST', '/tokens', { name: 'reader', scopes: ['read'] });
  await visit('/ui/resources', async (page, watch) => {
    await signIn(page, token);
    await page.getByRole('link', { name: own }).waitFor();
    assert.equal((await page.content()).includes('tenant.test'), false);
    for (const name of ['New resource', 'Settings', 'Accounts']) {
      assert.equal(await page.getByRole('link', { name, exact: true }).count(), 0, name);
    }
    await watch.check();
    await watch.picture('resources-reader');
    await page.getByRole('link', { name: own }).click();
    await page.getByRole('heading', { name: own }).waitFor();
    assert.equal(await page.getByRole('button', { name: /Delete/ }).count(), 0);
    await page.goto('/ui/subscriptions');
    assert.equal(await page.getByRole('link', { name: /New subscription/ }).count(), 0);
    watch.expect(/403/);
    await page.goto('/ui/settings');
    await page.getByText('auth.operator-token').waitFor();
  });
});
