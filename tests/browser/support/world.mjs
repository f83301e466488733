// A world with traffic: Flare, a client, a resource whose documents change, and subscriptions that fare well and badly.
import { launch, open } from './browser.mjs';
import { Flare } from './flare.mjs';
import { Receiver } from './receiver.mjs';

/** Settings that let trouble show itself within a test, and that keep every exchange. */
const SETTINGS = { FLARE_DELIVERY_FAILING_AFTER: '1s', FLARE_DELIVERY_ATTEMPTS_SAMPLE: '1' };

/** Flare with a resource, a client that listens, and a browser. */
export class World {
  static async begin(variables = {}) {
    const world = new World();
    [world.flare, world.receiver, world.browser] = await Promise.all([
      Flare.start({ ...SETTINGS, ...variables }),
      Receiver.start(),
      launch(),
    ]);
    return world;
  }

  /** A resource whose revision is the integer `version`. */
  async track(endpoint = 'http://shop.test/products/{id}') {
    this.resource = await this.flare.api('POST', '/resources', { endpoint, change: { field: 'version' } });
    return this.resource;
  }

  /** Subscribes the client at a path that says how it answers. */
  subscribe(path, settings = {}) {
    const endpoint = { url: this.receiver.url(path), ...settings.endpoint };
    const body = { ...settings, endpoint };
    return this.flare.api('POST', `/resources/${this.resource.id}/subscriptions`, body);
  }

  /** Changes a document. */
  put(id, version, more = {}) {
    return this.flare.put(`http://shop.test/products/${id}`, { version, name: `Product ${id}`, ...more });
  }

  /** A page that watches itself. */
  async open(options) {
    const opened = await open(this.browser, this.flare.origin, options);
    return opened;
  }

  async end() {
    await this.browser?.close();
    await this.receiver?.stop();
    await this.flare?.stop();
  }
}

/** Runs a test on a page of its own and closes it; what it did that it should not fails the test. */
export async function onPage(world, options, act) {
  const { page, watch, context } = await world.open(options);
  try {
    await act(page, watch);
    watch.clean();
  } finally {
    await context.close();
  }
}
