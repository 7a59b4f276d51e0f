// Contested statements of a space: what a less trusted source says otherwise, until somebody says which holds.

import { announce, card, confirmInDialog, element, list, reportErrors } from "../dom.js";
import { formatTime } from "../times.js";
import { toWords } from "../wording.js";

const MAX_SHOWN = 50;

/** Return the card with the contested statements; the user of the context reads and resolves them. */
export async function contestedCard(context, space) {
  const { items } = await context.api.get(context.userPath("contradictions"), { space: space.id });
  const contested = items.filter((pair) => pair.contested);
  const shown = contested.slice(0, MAX_SHOWN);
  const memories = await loadMemories(context, shown.flatMap((pair) => pair.memory_ids));
  const known = shown.filter((pair) => memories.has(pair.contested));
  return card("contested", "Contested", {},
    element("p", { class: "hint" }, "Statements that contradict a memory from an equally or more trusted source. They are neither believed nor found until you resolve them."),
    contested.length > MAX_SHOWN && element("p", { class: "hint" }, `The first ${MAX_SHOWN} of ${contested.length} are shown.`),
    list({ id: "contested-list" }, known.map((pair) => contestedItem(context, memories, pair)), "Nothing is contested."));
}

async function loadMemories(context, ids) {
  const found = await Promise.all([...new Set(ids)].map(async (id) => {
    try {
      return await context.api.get(context.userPath("memories", id));
    } catch (error) {
      if (error.status !== 404) throw error;
      return null;
    }
  }));
  return new Map(found.filter(Boolean).map((memory) => [memory.id, memory]));
}

function contestedItem(context, memories, pair) {
  const memory = memories.get(pair.contested);
  const others = pair.memory_ids.filter((id) => id !== pair.contested).map((id) => memories.get(id)).filter(Boolean);
  return element("li", { class: "between" },
    element("div", {},
      statement(context, memory, "name"),
      element("p", { class: "hint" }, `${sourceText(memory)} · ${formatTime(pair.reported_at)}`),
      ...others.map((other) => element("p", {}, "contradicts: ", statement(context, other), " ", element("span", { class: "hint" }, sourceText(other))))),
    element("div", { class: "buttons" },
      element("button", { type: "button", "aria-label": `Accept: ${memory.content}`, onClick: () => resolve(context, memory, others, true) }, "Accept…"),
      element("button", { type: "button", "aria-label": `Reject: ${memory.content}`, onClick: () => resolve(context, memory, others, false) }, "Reject…")));
}

const statement = (context, memory, kind = null) => element("a", { class: kind, href: context.link("memories", memory.id) }, memory.content);
const sourceText = ({ source }) => `source: ${toWords(source.kind)}${source.speaker ? `, said by ${source.speaker}` : ""}`;

async function resolve(context, memory, others, holds) {
  const replaced = others.map((other) => `“${other.content}”`).join(" and ");
  const sentence = holds
    ? `“${memory.content}” becomes current${replaced && `, and replaces ${replaced}`}.`
    : `“${memory.content}” is retired${replaced && `; ${replaced} stays`}.`;
  const body = [element("p", {}, `${sentence} The history keeps what was known, and a revert undoes this.`)];
  const title = holds ? "Accept this statement?" : "Reject this statement?";
  if (!(await confirmInDialog({ title, body, confirmText: holds ? "Accept" : "Reject", isDangerous: false }))) return;
  if (!(await reportErrors(() => context.api.post(context.userPath("memories", memory.id, "resolve"), { holds })))) return;
  await context.refresh();
  announce(holds ? "Accepted." : "Rejected.");
}
