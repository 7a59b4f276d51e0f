// Statements of a space that extraction keeps from the memories, until an admin releases or drops them.

import { apiPath } from "../api.js";
import { announce, card, confirmInDialog, element, pluralize, reportErrors } from "../dom.js";
import { PagedList } from "../paged_list.js";
import { formatTime } from "../times.js";
import { toWords } from "../wording.js";

const PAGE_SIZE = 20;

/** Return the card with what is in quarantine, the latest first. */
export async function quarantineCard(context, space) {
  // The place in the address is that of the list of memories.
  const own = Object.assign(Object.create(context), { shownRows: 0, rememberRows() {} });
  const statements = new PagedList(own, {
    id: "quarantine-list", nouns: ["statement", "statements"], emptyText: () => "Nothing is in quarantine.",
    load: (cursor) => context.api.get("admin/quarantine", { space: space.id, limit: PAGE_SIZE, cursor }),
    toItem: (statement) => statementItem(context, statement),
  });
  await statements.fill();
  return card("quarantine", "Quarantine", {},
    element("p", { class: "hint" }, "These statements do not become memories until an admin releases them."), statements.node);
}

function statementItem(context, { id, memory, reason, quote, source_kind: kind, times_seen: times, last_seen_at: seen }) {
  const statement = { id, content: memory.content };
  return element("li", { class: "between" },
    element("div", {},
      element("p", { class: "name" }, memory.content),
      element("p", {}, `Reason: ${reason}`),
      quote && element("blockquote", {}, quote),
      element("p", { class: "hint" }, `source: ${toWords(kind)} · seen ${pluralize(times, "time")}, last ${formatTime(seen)}`)),
    element("div", { class: "buttons" },
      element("button", { type: "button", "aria-label": `Release: ${memory.content}`, onClick: () => release(context, statement) }, "Release…"),
      element("button", { type: "button", "aria-label": `Drop: ${memory.content}`, onClick: () => drop(context, statement) }, "Drop…")));
}

async function release(context, { id, content }) {
  const body = [element("p", {}, `“${content}” becomes a memory of the space, and every member finds it.`)];
  if (!(await confirmInDialog({ title: "Release this statement?", body, confirmText: "Release" }))) return;
  if (!(await reportErrors(() => context.api.post(apiPath("admin", "quarantine", id, "release"))))) return;
  await context.refresh();
  announce("Released: it is a memory now.");
}

async function drop(context, { id, content }) {
  const body = [element("p", {}, `“${content}” is erased from the quarantine. The message that it is from stays.`)];
  if (!(await confirmInDialog({ title: "Drop this statement?", body, confirmText: "Drop" }))) return;
  if (!(await reportErrors(() => context.api.delete(apiPath("admin", "quarantine", id))))) return;
  await context.refresh();
  announce("Dropped.");
}
