import { Graphmem, VersionConflict } from "graphmem";

const graphmem = new Graphmem(); // the key is GRAPHMEM_API_KEY; or { apiKey: "gm_…", baseUrl: "http://…" }
const ada = graphmem.user("ada");

const lives = { predicate: "LIVES_IN", single_valued: true };
await ada.add([
  { content: "Ada lives in Turin", valid_at: "2019-05-01T00:00:00Z", ...lives },
  { content: "Ada lives in London", valid_at: "2024-03-01T00:00:00Z", ...lives },
]);
const now = await ada.search("where does Ada live?");
const then = await ada.search("where does Ada live?", { valid_as_of: "2020-01-01T00:00:00Z" });
console.log(now.results[0]?.memory.content, "/", then.results[0]?.memory.content);

await ada.messages([{ role: "user", content: "I only drink green tea." }], { session_id: "monday" });
const { preamble } = await ada.context("What shall I offer Ada?", { session_id: "monday", token_budget: 500 });
console.log(preamble);

for await (const memory of ada.memories({ tag: ["home"] })) console.log(memory.content);

try {
  const { id } = now.results[0]!.memory;
  await ada.update(id, { tags: ["home"] }, { ifVersion: 7 });
} catch (error) {
  if (!(error instanceof VersionConflict)) throw error;
  console.log(error.problem?.type, error.message);
}
