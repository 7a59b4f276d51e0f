// A memory: its timeline on both axes, all its versions with their sources, and correcting it.

import { announce, card, descriptions, element, pluralize } from "../dom.js";
import { drawStrength } from "../strength.js";
import { drawTimeline } from "../timeline.js";
import { formatInterval, formatTime } from "../times.js";
import { actorName, badge, percent, reasonWords, relationText, stateOf, toWords } from "../wording.js";
import { editCard } from "./memory_edit.js";
import { entityLink } from "./memory_list.js";

const MAX_RELATED = 12;
const MAX_MESSAGES = 600;

export async function memoryView(context) {
  const { items: versions } = await context.api.get(context.userPath("memories", context.id, "history"));
  const latest = versions.at(-1);
  const [histories, messages] = await Promise.all([loadRelated(context, latest, versions), loadSourceMessages(context, versions)]);
  const contents = new Map([...histories].map(([id, related]) => [id, related.at(-1).content]));
  context.setTitle(latest.content);
  context.root.append(
    card("memory", latest.content, { level: 1 },
      element("p", {}, badge(stateOf(latest)), ` ${relationText(latest)}`),
      element("p", { class: "hint" }, [toWords(latest.type), latest.scope, latest.domain, ...latest.tags, `confidence ${percent(latest.confidence)}`,
        `importance ${percent(latest.importance)}`].filter(Boolean).join(" · ")),
      element("div", { class: "chips" }, ...[latest.subject, latest.object, ...latest.entities].filter(Boolean)
        .filter((entity, index, all) => all.findIndex((other) => other.id === entity.id) === index).map((entity) => entityLink(context, entity)))),
    card("timeline", "Timeline", {},
      element("p", { class: "hint" }, "To the right: when it is true in the world. Upwards: when graphmem knew it."),
      drawTimeline([...histories.values()], context.id)),
    card("versions", `History: ${pluralize(versions.length, "version")}`, {},
      element("ol", { class: "plain", id: "versions" }, ...versions.map((version) => versionItem(context, version, messages, contents)))),
    ...(stateOf(latest) === "current" ? [card("strength", "Strength", {}, drawStrength(latest, versions[0].created_at))] : []),
    ...(context.isAdmin ? [editCard(context, latest)] : []));
  announce(`${pluralize(versions.length, "version")}.`);
}

/** Return the versions, by memory id, of the memory and of those that stood or stand in its place. */
async function loadRelated(context, memory, versions) {
  const histories = new Map([[memory.id, versions]]);
  const rivals = memory.single_valued ? await loadRivals(context, memory) : [];
  let open = [...neighboursOf(versions), ...rivals];
  while (open.length && histories.size < MAX_RELATED) {
    const ids = [...new Set(open)].filter((id) => !histories.has(id)).slice(0, MAX_RELATED - histories.size);
    const found = await Promise.all(ids.map((id) => context.api.get(context.userPath("memories", id, "history")).catch(ignoreMissing)));
    const loaded = found.map((page) => page?.items ?? []).filter((items) => items.length);
    for (const items of loaded) histories.set(items[0].id, items);
    open = loaded.flatMap(neighboursOf).filter((id) => !histories.has(id));
  }
  return histories;
}

function ignoreMissing(error) {
  if (error.status !== 404) throw error;
  return null;
}

const neighboursOf = (versions) => versions.flatMap((version) => [version.superseded_by, ...version.supersedes, ...version.contests]).filter(Boolean);

/** Return the ids of memories that state the same relation of the same subject. */
async function loadRivals(context, memory) {
  const { items } = await context.api.get(context.userPath("entities", memory.subject.id, "memories"), { include_superseded: true, limit: 200 });
  return items.filter((other) => other.predicate === memory.predicate && other.subject.id === memory.subject.id).map((other) => other.id);
}

function versionItem(context, version, messages, contents) {
  const quotes = version.source.message_ids.map((id) => messages.get(id)).filter(Boolean);
  const replacement = version.superseded_by && version.superseded_by !== version.id ? version.superseded_by : null;
  return element("li", { class: "version" },
    element("h3", {}, `Version ${version.version} · ${stateOf(version)}`),
    element("p", { class: "name" }, version.content),
    ...quotes.map((message) => element("figure", {},
      element("blockquote", {}, message.content),
      element("figcaption", { class: "hint" }, `${message.name ?? message.role}, ${formatTime(message.timestamp)}`))),
    quotes.length === 0 && version.source.quote && element("blockquote", {}, version.source.quote),
    descriptions([
      ["Source", sourceElement(context, version)],
      ["True in the world", formatInterval(version.valid_at, version.invalid_at)],
      ["Known to graphmem", formatInterval(version.created_at, version.expired_at)],
      ["Contests", version.status === "contested" && element("span", {}, ...version.contests.flatMap((id, index) => [index ? ", " : "",
        element("a", { href: context.link("memories", id) }, contents.get(id) ?? "a more trusted memory")]))],
      ["Why it ended", reasonWords(version.ended_reason)],
      ["Replaced by", replacement && element("a", { href: context.link("memories", replacement) }, contents.get(replacement) ?? "the memory that replaced it")],
    ]),
    element("a", { href: context.link("entities", version.subject.id, { valid: version.valid_at, known: version.created_at }) }, "The graph when this was learned"));
}

function sourceElement(context, version) {
  const session = version.source.session_id;
  return element("span", {}, `${toWords(version.source.kind)}, written by ${actorName(version.actor, context.keyNames)}`,
    version.source.speaker && `, said by ${version.source.speaker}`,
    session && ", in ", session && element("a", { href: context.link("sessions", session) }, "this session"));
}

/** Return the messages that are sources of the versions, by id. */
async function loadSourceMessages(context, versions) {
  const messageIds = new Set(versions.flatMap((version) => version.source.message_ids));
  const sessionIds = new Set(versions.filter((version) => version.source.message_ids.length).map((version) => version.source.session_id).filter(Boolean));
  const lists = await Promise.all([...sessionIds].map((id) => context.api.list(context.userPath("sessions", id, "messages"), {}, MAX_MESSAGES).catch(ignoreMissing)));
  return new Map(lists.flatMap((page) => page?.items ?? []).filter((message) => messageIds.has(message.id)).map((message) => [message.id, message]));
}
