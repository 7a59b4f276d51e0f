// Finding an entity by its name, an alias, or a sentence that names it.

import { latestOnly } from "../api.js";
import { card, element, field, pluralize, reportErrors } from "../dom.js";
import { hueOf } from "../graph_style.js";
import { PagedList } from "../paged_list.js";

const PAGE_SIZE = 50;
const TYPING_MS = 250;

export async function entitiesView(context) {
  const input = element("input", { type: "search", id: "find", autocomplete: "off", spellcheck: "false", value: context.query.get("q") ?? "" });
  const load = latestOnly((signal, query, cursor) => loadEntities(context, context.api.withSignal(signal), query, cursor));
  const found = new PagedList(context, {
    id: "found", attributes: { "aria-label": "Entities found" }, nouns: ["entity", "entities"], emptyText: () => (input.value.trim() ? "No matching entity." : "There are no entities yet."),
    load: (cursor) => load(input.value.trim(), cursor), toItem: (entity) => entityItem(context, entity),
    onCount: () => found.rows.setAttribute("aria-busy", "false"),
  });
  let timer = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    found.rows.setAttribute("aria-busy", "true");
    timer = setTimeout(() => {
      context.keepQuery({ q: input.value.trim() });
      reportErrors(() => found.fill());
    }, TYPING_MS);
  });
  context.root.append(card("entities", "Entities", { level: 1 }, field("Name, alias, or a sentence that names it", input), found.node));
  await found.fill();
}

/** Return a page of entities; those that the text names come first. */
async function loadEntities(context, api, query, cursor) {
  const lookup = query && !cursor ? api.get(context.userPath("entities", "lookup"), { q: query, limit: 1, reinforce: false }) : { entities: [] };
  const listing = api.get(context.userPath("entities"), { query, limit: PAGE_SIZE, cursor });
  const [page, matches] = await Promise.all([listing, lookup]);
  const listed = new Map(page.items.map((entity) => [entity.id, entity]));
  const matched = matches.entities.map((match) => listed.get(match.entity.id) ?? match.entity);
  const unique = new Map([...matched, ...page.items].map((entity) => [entity.id, entity]));
  return { items: [...unique.values()], next_cursor: page.next_cursor };
}

function entityItem(context, entity) {
  const aliases = entity.aliases.filter((alias) => alias !== entity.name);
  const details = [entity.type, entity.memory_count && pluralize(entity.memory_count, "memory", "memories"),
    aliases.length > 0 && `also ${aliases.join(", ")}`].filter(Boolean);
  return element("li", {}, element("a", { class: "row", href: context.link("entities", entity.id), "data-id": entity.id },
    element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }),
    element("span", { class: "name" }, entity.name), " ", element("span", { class: "hint" }, details.join(" · "))));
}
