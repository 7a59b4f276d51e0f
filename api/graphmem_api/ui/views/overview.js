// The start page of a user: who they are, how much is stored, what changed lately, and the whole graph of current facts.

import { apiPath } from "../api.js";
import { announce, card, confirmInDialog, element, list, pluralize, reportErrors } from "../dom.js";
import { GraphView } from "../graph_view.js";
import { address } from "../router.js";
import { formatTime } from "../times.js";
import { actorName, badge, changeWord } from "../wording.js";
import { entitiesOf, entityLink, memoryItem } from "./memory_list.js";

const MAX_MEMORIES = 1000;
const MAX_COUNTED = 1000;
const DAY_MS = 86_400_000;
const RECENT_DAYS = [7, 90, 3650];
const MAX_CHANGES = 600;
const SHOWN_CHANGES = 12;
const SHOWN_MEMORIES = 8;
/** What is stored of a user who has nothing but the spaces of which they are a member. */
const NOTHING_STORED = { created_at: null, last_write_at: null, memory_count: 0, session_count: 0 };

export async function overviewView(context) {
  const [users, entities, memories] = await Promise.all([
    context.api.list("users", { query: context.user }, 400),
    context.api.list(context.userPath("entities"), {}, MAX_COUNTED),
    context.api.list(context.userPath("memories"), { sort: "-importance" }, MAX_MEMORIES),
  ]);
  const summary = users.items.find((found) => found.user_id === context.user) ?? { ...NOTHING_STORED, user_id: context.user };
  const self = entities.items.find((entity) => entity.is_user);
  const graph = new GraphView({
    onEntity: (id) => context.open(context.link("entities", id)), onMemory: (id) => context.open(context.link("memories", id)), signal: context.signal,
  });
  const isDrawable = memories.items.some((memory) => memory.object);
  context.root.append(
    card("user", self && self.name !== context.user ? `${self.name} (${context.user})` : context.user, { level: 1 },
      self?.summary && element("p", {}, self.summary),
      counts(context, summary, entities),
      summary.created_at && element("p", { class: "hint" },
        `Since ${formatTime(summary.created_at)}${summary.last_write_at ? `; last change ${formatTime(summary.last_write_at)}` : ""}.`)),
    card("graph", "The whole graph", {},
      element("p", { class: "hint" }, memories.hasMore
        ? `The ${MAX_MEMORIES} most important current facts are drawn.` : "Every current fact between two entities."),
      isDrawable ? graph.node : element("p", {}, "No current fact connects two entities."),
      element("details", {}, element("summary", {}, "The entities as a list"),
        element("div", { class: "chips" }, ...entities.items.map((entity) => entityLink(context, entity))))),
    element("div", { class: "halves" },
      card("changes", "What changed lately", {}, await recentChanges(context, summary)),
      card("core", "Most important memories", {},
        list({ id: "core-memories" }, memories.items.slice(0, SHOWN_MEMORIES).map((memory) => memoryItem(context, memory)), "No memories yet."))),
    ...(context.isAdmin ? [forgetCard(context)] : []));
  if (isDrawable) {
    const connected = memories.items.filter((memory) => memory.object);
    const own = memories.items.filter((memory) => !memory.object);
    graph.show({ nodes: entitiesOf(connected), memories: [...connected, ...own] }, { centreId: self?.id });
  }
  context.setTitle(self?.name ?? context.user);
  announce(`${pluralize(summary.memory_count, "memory", "memories")} of ${self?.name ?? context.user}.`);
}

function forgetCard(context) {
  return card("forgetting", "Forget this user", {},
    element("p", {}, "Erases every memory, entity, session and message of the user everywhere, then searches for what is left. This cannot be undone."),
    element("button", { type: "button", class: "danger", id: "forget", onClick: () => forget(context) }, "Forget…"));
}

async function forget(context) {
  const body = [element("p", {}, `Everything stored for “${context.user}” is erased.`)];
  if (!(await confirmInDialog({ title: "Forget this user?", body, confirmText: "Forget", required: context.user }))) return;
  let result;
  if (!(await reportErrors(async () => { result = await context.api.delete(apiPath("users", context.user)); }))) return;
  context.dropKnownUser();
  await context.open(address({ view: "users" }));
  announce(`${context.user} is forgotten; ${result.residue ? pluralize(result.residue, "element") : "nothing"} is left.`);
}

function counts(context, summary, entities) {
  const tile = (number, noun, view) => element("li", {}, element("a", { href: context.link(view) }, element("strong", {}, String(number)), ` ${noun}`));
  return element("ul", { class: "counts", id: "counts", "aria-label": "How much is stored" },
    tile(summary.memory_count, summary.memory_count === 1 ? "memory" : "memories", "memories"),
    tile(`${entities.items.length}${entities.hasMore ? "+" : ""}`, entities.items.length === 1 ? "entity" : "entities", "entities"),
    tile(summary.session_count, summary.session_count === 1 ? "session" : "sessions", "sessions"));
}

/** Return the latest changes, the latest first. */
async function recentChanges(context, summary) {
  if (!summary.last_write_at) return element("p", { class: "hint" }, "Nothing has been learned yet.");
  const until = new Date(summary.last_write_at).getTime();
  let items = [];
  for (const days of RECENT_DAYS) {
    const since = new Date(until - days * DAY_MS).toISOString();
    ({ items } = await context.api.list(context.userPath("changes"), { since }, MAX_CHANGES));
    if (items.length >= SHOWN_CHANGES) break;
  }
  return list({ id: "recent-changes" }, items.reverse().slice(0, SHOWN_CHANGES).map((change) => changeItem(context, change)), "Nothing changed lately.");
}

function changeItem(context, change) {
  const text = change.memory?.content ?? "a memory whose entity no longer exists";
  return element("li", {}, element("a", { class: "row memory", href: context.link("memories", change.memory_id) },
    badge(change.kind, changeWord(change.kind)), " ", element("span", { class: "name" }, text),
    element("span", { class: "hint" }, `${formatTime(change.at)} · by ${actorName(change.actor, context.keyNames)}`)));
}
