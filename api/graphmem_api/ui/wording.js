// The words that the page uses for what the API names in identifiers.

import { element } from "./dom.js";

/** The types of memories. */
export const MEMORY_TYPES = [
  "preference", "fact", "plan", "feeling", "inferred_interest", "conversation_topic", "recommendation",
  "behavioral_pattern", "conversation_summary", "open_loop", "profile",
];

const CHANGE_WORDS = {
  inserted: "learned", superseded: "changed", deleted: "deleted", merged: "merged into another", restored: "restored",
};
const REASON_WORDS = {
  superseded: "another memory replaced it", amended: "it was corrected", merged: "it was merged into another memory",
  deleted: "it was deleted", reverted: "a replacement was undone", expired: "it expired", rewritten: "it was rewritten",
};
const CHANNEL_WORDS = { semantic: "meaning", keyword: "words", graph: "graph" };
const TRIGGER_WORDS = { nightly: "nightly", on_demand: "on demand", curated: "curated by hand", rollback: "rollback" };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Return whether an id was made by graphmem: people do not read such ids. */
export const isGenerated = (id) => UUID.test(id);

/** Return an identifier such as `open_loop` or `LIVES_IN` as words. */
export const toWords = (identifier) => identifier.toLowerCase().replaceAll("_", " ");

export const changeWord = (kind) => CHANGE_WORDS[kind] ?? toWords(kind);
export const triggerWord = (trigger) => TRIGGER_WORDS[trigger] ?? toWords(trigger);
export const channelWord = (channel) => CHANNEL_WORDS[channel] ?? channel;

/** Return why a version ended, or null. */
export const reasonWords = (reason) => (reason ? REASON_WORDS[reason] ?? reason : null);

/** Return the name of whoever wrote something: of a key, or of a part of graphmem. */
export function actorName(actor, keyNames) {
  if (!actor) return "graphmem";
  if (keyNames.has(actor)) return keyNames.get(actor);
  if (isGenerated(actor)) return keyNames.size ? "a revoked key" : "an API key";
  if (actor.startsWith("session:")) return "the summary of a session";
  return { cli: "the command line", maintenance: "maintenance" }[actor] ?? actor;
}

/** Return what has become of a version: one that was replaced is never called active. */
export function stateOf(version) {
  if (version.status === "deleted") return "deleted";
  if (version.status === "archived") return "archived";
  if (version.status === "contested" && !version.expired_at) return "contested";
  if (version.superseded_by || version.ended_reason || version.expired_at || version.status === "superseded") return "replaced";
  if (version.invalid_at && new Date(version.invalid_at) <= new Date()) return "ended";
  if (version.valid_at && new Date(version.valid_at) > new Date()) return "not yet true";
  return "current";
}

/** Return the names in a statement: subject, relation and object. */
export function relationText(memory) {
  return [memory.subject.name, toWords(memory.predicate), memory.object?.name].filter(Boolean).join(" → ");
}

export const percent = (share) => `${Math.round(share * 100)} %`;

/** Return a label that its kind colours. */
export const badge = (kind, text = toWords(kind)) => element("span", { class: `badge ${kind.replaceAll(" ", "-")}` }, text);

/** Return an abbreviated text. */
export function truncate(text, limit) {
  const letters = [...text];
  return letters.length <= limit ? text : `${letters.slice(0, limit - 1).join("")}…`;
}
