// Two times side by side: what came, what went, and what changed between them, as lists and in the graph.

import { announce, card, element, field, list, pluralize } from "../dom.js";
import { GraphView } from "../graph_view.js";
import { readLocalText, toLocalText } from "../times.js";
import { badge } from "../wording.js";
import { diffElement } from "../word_diff.js";
import { entitiesOf, memoryItem } from "./memory_list.js";

const MAX_MEMORIES = 1000;
const DAY_MS = 86_400_000;
const PRESETS = [["a day ago", 1], ["a week ago", 7], ["a month ago", 30], ["a year ago", 365]];

export async function compareView(context) {
  const given = Object.fromEntries(context.query);
  context.root.append(card("compare", "Compare two times", { level: 1 },
    element("p", { class: "hint" }, "An empty field means now."),
    compareForm(context, given),
    element("p", { class: "presets" }, "What graphmem knew now and: ", ...PRESETS.map(([label, days]) => presetLink(context, label, days)))));
  if (!Object.values(given).some(Boolean)) return;
  const [before, after] = await Promise.all([loadAt(context, given.v1, given.k1), loadAt(context, given.v2, given.k2)]);
  const diff = diffMemories(before.items, after.items);
  const isCut = before.hasMore || after.hasMore;
  const results = element("div", { class: "halves" }, resultCard(context, diff, isCut));
  context.root.append(results);
  const connected = diff.all.filter((memory) => memory.object);
  if (connected.length) drawDiff(context, diff, connected, results);
  announce(summaryText(diff));
}

function compareForm(context, given) {
  const time = (name, label) => field(label, element("input", { type: "datetime-local", name, step: 1, value: given[name] ?? "" }));
  const form = element("form", { id: "compare-form", onSubmit: (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    context.openQuery({ ...values, go: "yes" });
  } },
  element("div", { class: "halves" },
    element("fieldset", { class: "axis" }, element("legend", {}, "Before"), time("v1", "True at"), time("k1", "Known at")),
    element("fieldset", { class: "axis" }, element("legend", {}, "After"), time("v2", "True at"), time("k2", "Known at"))),
  element("button", { type: "submit", class: "main" }, "Compare"));
  return form;
}

function presetLink(context, label, days) {
  const then = toLocalText(new Date(Date.now() - days * DAY_MS));
  return element("a", { href: context.link("compare", null, { k1: then, go: "yes" }) }, label);
}

function loadAt(context, valid, known) {
  return context.api.list(context.userPath("memories"),
    { valid_as_of: readLocalText(valid)?.toISOString(), known_as_of: readLocalText(known)?.toISOString(), sort: "-importance" }, MAX_MEMORIES);
}

/** Return what differs: `added`, `removed`, `changed` and `replaced` as pairs, and `all` memories with their kinds. */
function diffMemories(before, after) {
  const [old, now] = [before, after].map((items) => new Map(items.map((memory) => [memory.id, memory])));
  const removed = new Map(before.filter((memory) => !now.has(memory.id)).map((memory) => [memory.id, memory]));
  const added = new Map(after.filter((memory) => !old.has(memory.id)).map((memory) => [memory.id, memory]));
  const changed = after.filter((memory) => isChanged(old.get(memory.id), memory)).map((memory) => [old.get(memory.id), memory]);
  const replaced = [];
  for (const memory of [...added.values()]) {
    const earlier = [...removed.values()].find((other) => other.superseded_by === memory.id || memory.supersedes.includes(other.id));
    if (!earlier) continue;
    replaced.push([earlier, memory]);
    removed.delete(earlier.id);
    added.delete(memory.id);
  }
  const kinds = new Map([...added.keys()].map((id) => [id, "added"]));
  for (const id of removed.keys()) kinds.set(id, "removed");
  for (const [, memory] of changed) kinds.set(memory.id, "changed");
  for (const [earlier, memory] of replaced) kinds.set(earlier.id, "removed").set(memory.id, "added");
  return { added: [...added.values()], removed: [...removed.values()], changed, replaced, kinds, all: [...new Map([...old, ...now]).values()] };
}

const isChanged = (before, after) => before !== undefined && (before.version !== after.version || before.content !== after.content);

const summaryText = ({ added, removed, changed, replaced }) => `${pluralize(added.length, "memory", "memories")} added, ${removed.length} gone, ${replaced.length} replaced, ${changed.length} changed.`;

function resultCard(context, diff, isCut) {
  const items = [
    ...diff.replaced.map(([before, after]) => pairItem(context, "replaced", before, after)),
    ...diff.changed.map(([before, after]) => pairItem(context, "changed", before, after)),
    ...diff.added.map((memory) => memoryItem(context, memory, { mark: "added" })),
    ...diff.removed.map((memory) => memoryItem(context, memory, { mark: "removed" })),
  ];
  return card("differences", "What changed", {},
    element("p", {}, summaryText(diff)),
    isCut && element("p", { class: "hint" }, `Only the ${MAX_MEMORIES} most important memories of each time are compared.`),
    list({ id: "differences" }, items, "No differences."));
}

function pairItem(context, kind, before, after) {
  return element("li", { class: kind }, element("a", { class: "row memory", href: context.link("memories", after.id), "data-id": after.id },
    badge(kind), " ", diffElement(before.content, after.content)));
}

function drawDiff(context, diff, connected, results) {
  const graph = new GraphView({
    onEntity: (id) => context.open(context.link("entities", id)), onMemory: (id) => context.open(context.link("memories", id)), signal: context.signal,
  });
  const words = { added: "added", removed: "gone", changed: "changed" };
  results.append(card("diff-graph", "In the graph", {},
    element("p", { class: "hint" }, ...Object.entries(words).flatMap(([kind, word]) => [badge(kind, word), " "])), graph.node));
  graph.show({ nodes: entitiesOf(connected), memories: connected }, { classOf: (memory) => diff.kinds.get(memory.id) ?? "dimmed" });
}
