// The sessions of a user, the latest first.

import { card, element, pluralize } from "../dom.js";
import { PagedList } from "../paged_list.js";
import { formatTime } from "../times.js";
import { isGenerated } from "../wording.js";

const PAGE_SIZE = 50;

export async function sessionsView(context) {
  const sessions = new PagedList(context, {
    id: "sessions", nouns: ["session", "sessions"], emptyText: () => "There are no sessions yet.",
    load: (cursor) => context.api.get(context.userPath("sessions"), { limit: PAGE_SIZE, cursor }), toItem: (session) => sessionItem(context, session),
  });
  context.root.append(card("sessions", "Sessions", { level: 1 }, sessions.node));
  await sessions.fill();
}

/** Return what a session is called: its title, else what its summary begins with, else the id that it was given, else its time. */
export function sessionName(session) {
  const id = isGenerated(session.session_id) ? `of ${formatTime(session.created_at)}` : session.session_id;
  return session.title ?? session.summary?.split("\n")[0] ?? `Session ${id}`;
}

function sessionItem(context, session) {
  const kind = session.kind === "extraction" ? "extraction" : session.is_active ? "open" : "closed";
  const details = [formatTime(session.created_at), pluralize(session.message_count, "message"), kind, ...session.topic_tags];
  return element("li", {}, element("a", { class: "row", href: context.link("sessions", session.session_id) },
    element("span", { class: "name" }, sessionName(session)), element("span", { class: "hint" }, details.join(" · "))));
}
