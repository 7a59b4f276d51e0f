// Finding an entity by its name, an alias, or a sentence that names it.

import { latestOnly } from "../api.js";
import { announce, card, element, field, list, pluralize, reportErrors } from "../dom.js";
import { hueOf } from "../graph_style.js";

const PAGE_SIZE = 50;
const TYPING_MS = 250;

export async function entitiesView(context) {
  const rows = list({ id: "found", "aria-label": "Entities found" }, [], "");
  const more = element("button", { type: "button", hidden: true, onClick: () => reportErrors(() => fill(cursor)) }, "More");
  const input = element("input", { type: "search", id: "find", autocomplete: "off", spellcheck: "false", value: context.query.get("q") ?? "" });
  let cursor = null;
  let timer = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    rows.setAttribute("aria-busy", "true");
    timer = setTimeout(() => reportErrors(() => fill()), TYPING_MS);
  });
  const load = latestOnly((signal, query, from) => loadEntities(context, context.api.withSignal(signal), query, from));

  async function fill(from = null) {
    const query = input.value.trim();
    context.keepQuery({ q: query });
    const page = await load(query, from);
    if (!page || context.signal.aborted) return;
    ({ cursor } = page);
    const items = page.items.map((entity) => entityItem(context, entity));
    if (from) rows.append(...items);
    else rows.replaceChildren(...(items.length ? items : [element("li", { class: "hint" }, "No matching entity.")]));
    more.hidden = !cursor;
    rows.setAttribute("aria-busy", String(query !== input.value.trim()));
    announce(`${pluralize(rows.querySelectorAll("a").length, "entity", "entities")}${cursor ? " and more" : ""} found.`);
  }

  context.root.append(card("entities", "Entities", { level: 1 }, field("Name, alias, or a sentence that names it", input), rows, more));
  await fill();
}

/** Return a page of entities; those that the text names come first. */
async function loadEntities(context, api, query, cursor) {
  const lookup = query && !cursor ? api.get(context.userPath("entities", "lookup"), { q: query, limit: 1 }) : { entities: [] };
  const listing = api.get(context.userPath("entities"), { query, limit: PAGE_SIZE, cursor });
  const [page, matches] = await Promise.all([listing, lookup]);
  const listed = new Map(page.items.map((entity) => [entity.id, entity]));
  const matched = matches.entities.map((match) => listed.get(match.entity.id) ?? match.entity);
  const unique = new Map([...matched, ...page.items].map((entity) => [entity.id, entity]));
  return { items: [...unique.values()], cursor: page.next_cursor };
}

function entityItem(context, entity) {
  const aliases = entity.aliases.filter((alias) => alias !== entity.name);
  const details = [entity.type, entity.memory_count && pluralize(entity.memory_count, "memory", "memories"),
    aliases.length > 0 && `also ${aliases.join(", ")}`].filter(Boolean);
  return element("li", {}, element("a", { class: "row", href: context.link("entities", entity.id), "data-id": entity.id },
    element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }),
    element("span", { class: "name" }, entity.name), " ", element("span", { class: "hint" }, details.join(" · "))));
}
