// A session: its messages, and beside each the memories that were drawn from it.

import { announce, card, element, list, pluralize } from "../dom.js";
import { formatTime } from "../times.js";
import { memoryItem } from "./memory_list.js";
import { sessionName } from "./sessions.js";

const MAX_MESSAGES = 600;
const MAX_MEMORIES = 600;

export async function sessionView(context) {
  const [session, messages, memories] = await Promise.all([
    context.api.get(context.userPath("sessions", context.id)),
    context.api.list(context.userPath("sessions", context.id, "messages"), {}, MAX_MESSAGES),
    context.api.list(context.userPath("memories"), { session_id: context.id, include_superseded: true, sort: "created_at" }, MAX_MEMORIES),
  ]);
  const byMessage = new Map();
  for (const memory of memories.items) {
    for (const id of memory.source.message_ids) byMessage.set(id, [...(byMessage.get(id) ?? []), memory]);
  }
  const shown = new Set(messages.items.flatMap((message) => byMessage.get(message.id) ?? []));
  const others = memories.items.filter((memory) => !shown.has(memory));
  context.setTitle(sessionName(session));
  context.root.append(
    card("session", sessionName(session), { level: 1 },
      element("p", { class: "hint" }, [formatTime(session.created_at), pluralize(session.message_count, "message"), session.is_active ? "open" : "closed",
        `${pluralize(memories.items.length, "memory", "memories")} drawn from it`].join(" · ")),
      session.source_session_id && element("p", {}, element("a", { href: context.link("sessions", session.source_session_id) }, "The session that was extracted")),
      session.summary && session.title && element("p", {}, session.summary)),
    card("messages", "Messages", {},
      messages.hasMore && element("p", { class: "hint" }, `The first ${MAX_MESSAGES} are shown.`),
      element("ol", { class: "plain", id: "messages" }, ...messages.items.map((message) => messageItem(context, message, byMessage.get(message.id) ?? [])))),
    ...(others.length ? [card("others", "Drawn from the session as a whole", {}, list({ id: "others" }, others.map((memory) => memoryItem(context, memory)), ""))] : []));
  announce(`${pluralize(messages.items.length, "message")}, ${pluralize(memories.items.length, "memory", "memories")}.`);
}

function messageItem(context, message, memories) {
  const rating = message.feedback_score ? ` · rated ${message.feedback_score} of 5` : "";
  return element("li", { class: `message ${message.role}` },
    element("p", { class: "hint" }, `${message.name ?? message.role}${message.timestamp ? ` · ${formatTime(message.timestamp)}` : ""}${rating}`),
    element("p", { class: "said" }, message.content),
    memories.length > 0 && element("div", { class: "drawn" },
      element("p", { class: "hint" }, pluralize(memories.length, "memory was drawn from it", "memories were drawn from it")),
      list({}, memories.map((memory) => memoryItem(context, memory)), "")));
}
