/** The client against a real server. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { Forbidden, Graphmem, ImmutableMemory, InvalidInput, NotFound, Unauthenticated, VersionConflict } from "graphmem";
import { ADMIN_KEY, graphmem, QUARANTINED, SERVER_URL } from "./support.js";

const newUser = () => graphmem.user(`ada-${randomUUID()}`);

test("statements are saved, found, corrected and read back with their history", async () => {
  const ada = newUser();
  const [first, second] = await ada.add([
    { content: "Ada lives in Turin", predicate: "LIVES_IN", single_valued: true, valid_at: "2019-05-01T00:00:00Z" },
    { content: "Ada lives in London", predicate: "LIVES_IN", single_valued: true, valid_at: "2024-03-01T00:00:00Z" },
  ]);
  assert.equal(first?.action, "insert");
  assert.deepEqual(second?.superseded, [first?.memory?.id]);

  const now = await ada.search("where does Ada live?", { limit: 1 });
  const then = await ada.search("where does Ada live?", { limit: 1, valid_as_of: "2020-01-01T00:00:00Z" });
  assert.equal(now.results[0]?.memory.content, "Ada lives in London");
  assert.equal(then.results[0]?.memory.content, "Ada lives in Turin");

  const { id, version } = now.results[0]!.memory;
  const corrected = await ada.update(id, { importance: 0.9 }, { ifVersion: version });
  assert.equal(corrected.version, version + 1);
  await assert.rejects(ada.update(id, { importance: 0.1 }, { ifVersion: version }), VersionConflict);
  assert.deepEqual((await ada.history(id)).map((entry) => entry.version), [version, version + 1]);
  const kinds = new Set((await ada.changes().toArray()).map((change) => change.kind));
  assert.ok(kinds.has("inserted"));
  assert.equal((await ada.delete(id)).status, "deleted");
});

test("lists are iterated over page by page, with filters of every form", async () => {
  const ada = newUser();
  const animals = ["cat", "dog", "owl"];
  await ada.add(animals.map((pet) => ({ content: `Ada has a ${pet}`, tags: ["pets", pet], metadata: { pet } })));
  await ada.add("Ada plays the cello");

  const found: string[] = [];
  for await (const memory of ada.memories({ tag: ["pets"], not_tag: ["dog"], limit: 1 })) found.push(memory.content);
  assert.deepEqual(found.sort(), ["Ada has a cat", "Ada has a owl"]);
  const [owl] = await ada.memories({ metadata: { pet: "owl" } }).toArray();
  assert.equal(owl?.content, "Ada has a owl");
  assert.equal((await ada.memories({ limit: 3 }).pages().next()).value?.items.length, 3);
});

test("a conversation is stored, read back and put into a context", async () => {
  const ada = newUser();
  await ada.add("Ada prefers green tea");
  const turns = [
    { role: "user", content: "Good morning" },
    { role: "assistant", content: "Good morning, Ada" },
  ] as const;
  const accepted = await ada.messages(turns, { session_id: "monday" });
  assert.equal(accepted.message_ids.length, 2);
  const job = await ada.messages([{ role: "user", content: "I am back" }], { session_id: "monday", wait: true });
  assert.equal((await graphmem.job(job.id)).status, job.status);
  const stored = await ada.sessionMessages("monday", { limit: 2 }).toArray();
  assert.deepEqual(stored.map((message) => message.content), ["Good morning", "Good morning, Ada", "I am back"]);

  const context = await ada.context("What does Ada drink?", { session_id: "monday", token_budget: 500 });
  assert.match(context.preamble, /green tea/);
  assert.ok(context.token_count <= 500);
});

test("ids may hold any character, and those that no path can hold are refused", async () => {
  const odd = graphmem.user(`../ada?/ä ${randomUUID()}#%`);
  await odd.add("This user has an odd id");
  assert.equal((await odd.memories().toArray()).length, 1);
  await assert.rejects(graphmem.user("..").profile(), InvalidInput);
  await assert.rejects(odd.memory(""), InvalidInput);
});

test("errors are told apart by class and by the type of their problem", async () => {
  const ada = newUser();
  const [saved] = await ada.add({ content: "Ada was born in Turin", immutable: true });
  await assert.rejects(ada.update(saved!.memory!.id, { content: "Ada was born in Rome" }), ImmutableMemory);
  await assert.rejects(ada.memory(randomUUID()), NotFound);
  await assert.rejects(new Graphmem({ apiKey: "gm_none" }).user("ada").profile(), Unauthenticated);
  await assert.rejects(ada.search("tea", { limit: 0 }), (error) => {
    assert.ok(error instanceof InvalidInput);
    assert.equal(error.problem?.type, "urn:graphmem:problem:invalid-input");
    assert.deepEqual(error.problem.errors?.[0]?.loc, ["body", "limit"]);
    assert.equal(error.status, 422);
    assert.match(error.requestId ?? "", /./);
    return true;
  });
});

test("a space is shared by its members, and gone for those who were removed", async () => {
  const admin = new Graphmem({ apiKey: ADMIN_KEY, baseUrl: SERVER_URL });
  const [ann, bob] = [newUser(), newUser()];
  const id = `atlas-${randomUUID()}`;
  const made = await admin.putSpace(id, { title: "Team Atlas", members: [{ user: ann.id, role: "owner" }] });
  assert.deepEqual([made.title, made.members], ["Team Atlas", [{ user: ann.id, role: "owner" }]]);
  await admin.setSpaceMember(id, bob.id, "writer", { kind: "user" });
  assert.equal((await graphmem.space(id)).members.length, 2);
  assert.ok((await graphmem.spaces()).some((space) => space.id === id));

  await bob.add([{ content: "Atlas starts in December", space: id }, { content: "Bob sings at home" }]);
  assert.deepEqual((await ann.memories({ space: id }).toArray()).map((memory) => memory.space), [id]);
  const { results } = await ann.search("when does Atlas start?", { spaces: [id] });
  assert.equal(results[0]?.memory.content, "Atlas starts in December");
  assert.equal((await ann.search("when does Atlas start?", { spaces: "none" })).results.length, 0);
  assert.equal((await bob.memories({ spaces: ["none"] }).toArray()).length, 1);
  assert.match(JSON.stringify(await ann.export({ space: id })), /Atlas starts in December/);

  await admin.removeSpaceMember(id, ann.id);
  assert.deepEqual(await ann.memories().toArray(), []);
  await assert.rejects(ann.search("Atlas", { spaces: [id] }), NotFound);
  assert.equal((await admin.deleteSpace(id)).residue, 0);
  await assert.rejects(admin.space(id), NotFound);
});

test("what a less trusted source says otherwise is contested until it is resolved", async () => {
  const admin = new Graphmem({ apiKey: ADMIN_KEY, baseUrl: SERVER_URL });
  const ada = newUser();
  const home = { predicate: "LIVES_IN", single_valued: true };
  await ada.add({ content: "Ada lives in Turin", object: { name: "Turin" }, valid_at: "2020-01-01T00:00:00Z", ...home });
  const oslo = { content: "Ada lives in Oslo", object: { name: "Oslo" }, valid_at: "2024-01-01T00:00:00Z", ...home };
  const [claimed] = await ada.add({ ...oslo, source: { kind: "web", speaker: "alumni.example" } });
  assert.equal(claimed?.action, "contest");
  const contents = async (filters = {}) => (await ada.memories(filters).toArray()).map((memory) => memory.content);
  assert.deepEqual(await contents(), ["Ada lives in Turin"]);
  assert.deepEqual((await contents({ include_contested: true })).sort(), ["Ada lives in Oslo", "Ada lives in Turin"]);
  assert.deepEqual(await contents({ include_contested: true, min_trust: "document" }), ["Ada lives in Turin"]);
  assert.equal((await ada.contradictions())[0]?.contested, claimed?.memory?.id);

  const resolved = await ada.resolve(claimed!.memory!.id, true);
  assert.deepEqual([resolved.status, await contents()], ["active", ["Ada lives in Oslo"]]);
  await ada.revert(resolved.id);
  assert.deepEqual(await contents(), ["Ada lives in Turin"]);
  assert.equal((await ada.entity(resolved.subject.id)).id, resolved.subject.id);

  assert.deepEqual((await admin.setTrust(["operator", ["user", "import"]])).order[1], ["user", "import"]);
  await admin.setTrust([]);
  assert.deepEqual((await admin.trust()).order[0], ["user"]);
});

test("the quarantine is for admins", async () => {
  const admin = new Graphmem({ apiKey: ADMIN_KEY, baseUrl: SERVER_URL });
  const listed = await admin.quarantine({ limit: 1 }).toArray();
  assert.deepEqual(listed.map((found) => found.id).sort(), [...QUARANTINED].sort());
  await assert.rejects(graphmem.quarantine().toArray(), Forbidden);
  const [released, dropped] = listed;
  const { memory } = await admin.releaseQuarantined(released!.id);
  assert.equal(memory?.content, released!.memory.content);
  await admin.dropQuarantined(dropped!.id);
  assert.deepEqual(await admin.quarantine().toArray(), []);
  await assert.rejects(admin.dropQuarantined(dropped!.id), NotFound);
});

test("a user is forgotten by an admin, and every route of the API is within reach", async () => {
  const ada = newUser();
  await ada.add("Ada plays the cello");
  const admin = new Graphmem({ apiKey: ADMIN_KEY, baseUrl: SERVER_URL });
  const { data } = await admin.api.GET("/v1/admin/keys");
  assert.ok(data?.items.some((key) => key.role === "agent"));
  const exported = await admin.user(ada.id).export();
  assert.equal((await admin.user(ada.id).forget()).residue, 0);
  assert.deepEqual(await ada.memories().toArray(), []);
  assert.ok((await admin.user(ada.id).import(exported)).imported);
  assert.equal((await ada.memories().toArray()).length, 1);
});
