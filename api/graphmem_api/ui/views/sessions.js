// The sessions of a user, the latest first.

import { announce, card, element, list, pluralize, reportErrors } from "../dom.js";
import { formatTime } from "../times.js";

const PAGE_SIZE = 50;

export async function sessionsView(context) {
  const rows = list({ id: "sessions" }, [], "");
  const more = element("button", { type: "button", hidden: true, onClick: () => reportErrors(() => append()) }, "More");
  let cursor = null;
  async function append() {
    const page = await context.api.get(context.userPath("sessions"), { limit: PAGE_SIZE, cursor });
    const items = page.items.map((session) => sessionItem(context, session));
    if (cursor === null) rows.replaceChildren(...(items.length ? items : [element("li", { class: "hint" }, "There are no sessions.")]));
    else rows.append(...items);
    ({ next_cursor: cursor } = page);
    more.hidden = !cursor;
    announce(`${pluralize(rows.querySelectorAll("a").length, "session")}${cursor ? " and more" : ""}.`);
  }
  context.root.append(card("sessions", "Sessions", { level: 1 }, rows, more));
  await append();
}

/** Return what a session is called: its title, else what its summary begins with, else its id. */
export const sessionName = (session) => session.title ?? session.summary?.split("\n")[0] ?? `Session ${session.session_id}`;

function sessionItem(context, session) {
  const kind = session.kind === "extraction" ? "extraction" : session.is_active ? "open" : "closed";
  const details = [formatTime(session.created_at), pluralize(session.message_count, "message"), kind, ...session.topic_tags];
  return element("li", {}, element("a", { class: "row", href: context.link("sessions", session.session_id) },
    element("span", { class: "name" }, sessionName(session)), element("span", { class: "hint" }, details.join(" · "))));
}
