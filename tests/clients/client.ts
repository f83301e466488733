// A client in TypeScript whose types openapi-typescript made of a node's own description: creates, reads, lists and
// patches. Called with the address of the node; `flare.d.ts` is generated beside it before it is compiled.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./flare.js";

type SubscriptionDraft = components["schemas"]["SubscriptionDraft"];

const client = createClient<paths>({ baseUrl: process.argv[2] });

const resource = await client.POST("/resources", {
  body: { endpoint: "http://api.company.com/typescript/{id}", change: { field: "rev" } },
});
assert(resource.data, JSON.stringify(resource.error));
const rid = resource.data.id;

const body: SubscriptionDraft = {
  endpoint: { url: "http://127.0.0.1:9/told/{id}", method: "post" },
  content: { patch: "json" },
  delivery: { timeout: "15s", concurrency: 2 },
  mode: "passive",
  start: "beginning",
  filter: "document.quantity > 0",
};
const created = await client.POST("/resources/{rid}/subscriptions", { params: { path: { rid } }, body });
assert(created.data, JSON.stringify(created.error));
assert.match(created.data.secret ?? "", /^whsec_/);
assert.equal(created.data.content.patch, "json");

const path = { rid, id: created.data.id };
const patched = await client.PATCH("/resources/{rid}/subscriptions/{id}", {
  params: { path },
  body: { filter: null, delivery: { concurrency: 5 }, content: { patch: true } },
});
assert(patched.data, JSON.stringify(patched.error));
assert.equal(patched.data.delivery.concurrency, 5);

const read = await client.GET("/resources/{rid}/subscriptions/{id}", { params: { path } });
assert(read.data, JSON.stringify(read.error));
const mode: "active" | "passive" | undefined = read.data.mode;
assert.deepEqual([read.data.id, mode, read.data.filter, read.data.content.patch], [path.id, "passive", undefined, "merge"]);

const listed = await client.GET("/resources/{rid}/subscriptions", { params: { path: { rid } } });
assert.deepEqual(listed.data?.subscriptions.map((one) => one.id), [path.id]);
