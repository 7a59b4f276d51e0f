// The list of memories with filters; the filters are in the address.

import { card, element, field, select } from "../dom.js";
import { PagedList } from "../paged_list.js";
import { readLocalText } from "../times.js";
import { MEMORY_TYPES, toWords } from "../wording.js";
import { memoryItem } from "./memory_list.js";

const PAGE_SIZE = 50;
const NARROW = 600;
const SCOPES = ["profile", "domain", "episodic", "global"];
const ORDERS = [["-created_at", "latest learned first"], ["-importance", "most important first"], ["-valid_at", "latest true first"], ["created_at", "first learned first"]];
const TEXT_FILTERS = [["keyword", "Words"], ["entity", "Entity"], ["tag", "Tag"], ["domain", "Domain"]];

export async function memoriesView(context) {
  const given = Object.fromEntries(context.query);
  const query = toApiQuery(given);
  const title = element("h2", { id: "list-title" }, "Memories");
  const memories = new PagedList(context, {
    id: "memories", nouns: ["memory", "memories"], emptyText: () => (Object.values(given).some(Boolean) ? "No memory matches the filters." : "There are no memories yet."),
    load: (cursor) => context.api.get(context.userPath("memories"), { ...query, limit: PAGE_SIZE, cursor }),
    toItem: (memory) => memoryItem(context, memory), onCount: (text) => { title.textContent = text; },
  });
  context.root.append(card("memories", "Memories", { level: 1 }, filterForm(context, given)),
    element("section", { class: "card", "aria-labelledby": "list-title" }, title, memories.node));
  await memories.fill();
}

function filterForm(context, given) {
  const form = element("form", { id: "filters", onSubmit: (event) => {
    event.preventDefault();
    context.openQuery(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()])));
  } },
  element("details", { open: innerWidth > NARROW || Object.values(given).some(Boolean) }, element("summary", {}, "Filters"), element("div", { class: "filters" },
    ...TEXT_FILTERS.map(([name, label]) => field(label, element("input", { type: "text", name, value: given[name] ?? "", autocomplete: "off", spellcheck: "false" }))),
    field("Type", select({ name: "type" }, [["", "any"], ...MEMORY_TYPES.map((type) => [type, toWords(type)])], given.type)),
    field("Scope", select({ name: "scope" }, [["", "any"], ...SCOPES.map((scope) => [scope, scope])], given.scope)),
    field("Importance from", select({ name: "importance" }, [["", "any"], ["0.3", "0.3"], ["0.5", "0.5"], ["0.8", "0.8"]], given.importance)),
    field("True at", element("input", { type: "datetime-local", name: "valid", step: 1, value: given.valid ?? "" })),
    field("Known at", element("input", { type: "datetime-local", name: "known", step: 1, value: given.known ?? "" })),
    field("Order", select({ name: "sort" }, ORDERS, given.sort ?? "-created_at")),
    element("label", { class: "inline" }, element("input", { type: "checkbox", name: "ended", value: "yes", checked: given.ended === "yes" }), "include those no longer true"),
    element("button", { type: "submit", class: "main" }, "Filter"),
    element("a", { href: context.link("memories") }, "Reset"))));
  return form;
}

function toApiQuery(given) {
  return {
    keyword: given.keyword, entity: given.entity, tag: given.tag, domain: given.domain, type: given.type, scope: given.scope,
    min_importance: given.importance, sort: given.sort, include_superseded: given.ended === "yes" || null,
    valid_as_of: readLocalText(given.valid)?.toISOString(), known_as_of: readLocalText(given.known)?.toISOString(),
  };
}
