// Rows of memories, as every list of the page shows them.

import { element } from "../dom.js";
import { hueOf } from "../graph_style.js";
import { formatInterval } from "../times.js";
import { badge, percent, relationText, stateOf, toWords } from "../wording.js";

/** Return a row with a statement and what is most important about it; `extra` follows it. */
export function memoryItem(context, memory, { attributes = {}, extra = [], mark = null } = {}) {
  const state = stateOf(memory);
  const details = [relationText(memory), toWords(memory.type), formatInterval(memory.valid_at, memory.invalid_at),
    `confidence ${percent(memory.confidence)}`];
  return element("li", { class: mark },
    element("a", { class: "row memory", href: context.link("memories", memory.id), "data-id": memory.id, ...attributes },
      mark && badge(mark), mark && " ", state !== "current" && badge(state), state !== "current" && " ",
      element("span", { class: "name" }, memory.content),
      element("span", { class: "hint" }, details.join(" · "))),
    ...extra);
}

/** Return a link to an entity with the colour of its type. */
export function entityLink(context, entity, attributes = {}) {
  return element("a", { class: "chip", href: context.link("entities", entity.id), "data-id": entity.id, ...attributes },
    element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }), `${entity.name} (${entity.type})`);
}

/** Return the entities of memories, by id, each once. */
export function entitiesOf(memories) {
  return [...new Map(memories.flatMap((memory) => [memory.subject, memory.object].filter(Boolean)).map((entity) => [entity.id, entity])).values()];
}
