/** Attempts, time limits and idempotency keys, over a proxy that fails. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { Graphmem, GraphmemError, IdempotencyConflict, RateLimited, Unavailable } from "graphmem";
import { graphmem, startProxy } from "./support.js";

const busy = { status: 429, headers: { "retry-after": "0" } };

test("a call is repeated when the server is busy, unavailable or lost, and a write happens once", async () => {
  await using proxy = await startProxy(busy, { status: 503 }, "drop");
  const ada = proxy.client().user(`ada-${randomUUID()}`);
  const [saved] = await ada.add("Ada prefers green tea");
  assert.equal(saved?.action, "insert");
  assert.equal(proxy.requests.length, 4);
  assert.equal(new Set(proxy.requests.map((request) => request.headers["idempotency-key"])).size, 1);
  assert.equal((await ada.memories().toArray()).length, 1);
});

test("a call fails for good after its attempts, or when the server asks for too long a pause", async () => {
  await using proxy = await startProxy(busy, busy, { status: 503, headers: { "retry-after": "3600" } });
  await assert.rejects(proxy.client({ attempts: 2 }).user("ada").profile(), RateLimited);
  await assert.rejects(proxy.client().user("ada").profile(), (error) => {
    assert.ok(error instanceof Unavailable);
    assert.equal(error.retryAfter, 3600);
    return true;
  });
  assert.equal(proxy.requests.length, 3);
});

test("an attempt has a time limit, and a caller can end a call and its pauses", async () => {
  await using proxy = await startProxy("silence", "silence", { status: 503, headers: { "retry-after": "60" } });
  const client = proxy.client({ attempts: 1, timeout: 50 });
  await assert.rejects(client.user("ada").profile(), Unavailable);
  const patient = proxy.client({ attempts: 2, timeout: null });
  for (let call = 0; call < 2; call++) {
    const signal = AbortSignal.timeout(50);
    await assert.rejects(patient.user("ada").search("tea", { signal }), { name: "TimeoutError" });
  }
  await assert.rejects(patient.user("ada").profile(undefined, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(proxy.requests.length, 3);
});

test("a key of the caller's own makes a write happen once", async () => {
  const ada = graphmem.user(`ada-${randomUUID()}`);
  const idempotencyKey = randomUUID();
  const [first] = await ada.add("Ada plays the cello", { idempotencyKey });
  const [again] = await ada.add("Ada plays the cello", { idempotencyKey });
  assert.deepEqual(again, first);
  await assert.rejects(ada.add("Ada plays the viola", { idempotencyKey }), IdempotencyConflict);
});

test("a server that is not there, or is another one, is named as such", async () => {
  const absent = new Graphmem({ baseUrl: "http://127.0.0.1:9", attempts: 1 });
  await assert.rejects(absent.user("ada").profile(), /graphmem at http:\/\/127\.0\.0\.1:9 cannot be reached/);
  await using proxy = await startProxy({ status: 500, headers: { "content-type": "text/html" }, body: "<p>no</p>" });
  await assert.rejects(proxy.client().user("ada").profile(), (error) => {
    assert.ok(error instanceof GraphmemError);
    assert.equal(error.problem, undefined);
    return error.status === 500;
  });
});
