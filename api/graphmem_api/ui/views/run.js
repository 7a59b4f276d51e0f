// One consolidation run: who started it, what the model proposed and why, the verdicts, and what it changed.

import { announce, card, descriptions, element, list, pluralize } from "../dom.js";
import { address } from "../router.js";
import { formatTime } from "../times.js";
import { actorName, badge, toWords, triggerWord } from "../wording.js";
import { changeItem, isShownChange } from "./run_changes.js";
import { rollbackCard } from "./rollback.js";

const POLL_MS = 1000;
const VERDICT_WORDS = { planned: "would be executed", stale: "out of date" };

export async function runView(context) {
  const run = await context.api.get(`admin/consolidations/${encodeURIComponent(context.id)}`);
  const names = await loadNames(context, run);
  context.setTitle(`Run of ${formatTime(run.created_at)}`);
  context.root.append(summaryCard(context, run), ...(await rollbackCard(context, run)), proposalsCard(run, names),
    card("run-changes", `${run.dry_run ? "What it would change" : "Changes"} (${run.changes.filter(isShownChange).length})`, {},
      list({ class: "changes" }, run.changes.filter(isShownChange).map((change) => changeItem(change, names)),
        run.dry_run ? "A dry run changes nothing: its proposals say what it would do." : "It changed nothing.")));
  announce(`Run ${toWords(run.status)}.`);
  if (run.status === "queued" || run.status === "running") {
    const timer = setTimeout(() => context.refresh(), POLL_MS);
    context.signal.addEventListener("abort", () => clearTimeout(timer));
  }
}

function summaryCard(context, run) {
  const link = (id) => id && element("a", { href: address({ view: "runs", id }) }, "another run");
  return card("run", `Run of ${formatTime(run.created_at)}`, { level: 1 },
    element("p", {}, badge(run.status), run.dry_run && " ", run.dry_run && badge("dry run")),
    run.reason && element("p", {}, run.reason),
    descriptions([
      ["User", run.user_id ? element("a", { href: address({ user: run.user_id, view: "overview" }) }, run.user_id) : "all users"],
      ["Started", `${triggerWord(run.trigger)}, by ${actorName(run.actor, context.keyNames)}`],
      ["Finished", run.finished_at && formatTime(run.finished_at)],
      ["Proposals", `${run.proposals.length}: ${run.executed} executed, ${run.refused} refused`],
      ["Profiles", run.profiles > 0 && pluralize(run.profiles, "profile")],
      ["It undid", link(run.undoes)],
      ["Rolled back by", link(run.undone_by)],
    ]),
    run.parts.length > 0 && list({ id: "parts" }, run.parts.map((id, index) => element("li", {}, element("a", { href: address({ view: "runs", id }) }, `Part ${index + 1}`))), ""));
}

function proposalsCard(run, names) {
  const contradictions = run.contradictions.map(({ memory_ids: ids, reason }) => element("li", {},
    badge("removed", "contradiction"), " ", element("span", { class: "name" }, ids.map((id) => `“${nameOf(names, id)}”`).join(" and ")), element("span", { class: "hint" }, reason)));
  return card("proposals", `${run.dry_run ? "What it would do" : "Proposals"} (${run.proposals.length})`, {},
    list({ id: "proposals" }, [...run.proposals.map((reviewed) => proposalItem(reviewed, names)), ...contradictions], "The model proposed nothing."));
}

function proposalItem({ proposal, verdict, reason }, names) {
  return element("li", {},
    element("p", {}, badge(verdict, VERDICT_WORDS[verdict] ?? verdict), " ", element("span", { class: "name" }, proposalSentence(proposal, names))),
    proposal.reason && element("p", { class: "hint" }, `Reason: ${proposal.reason}`),
    reason && element("p", { class: "hint" }, `Check: ${reason}`));
}

const nameOf = (names, id) => names.get(id) ?? "something that no longer exists";

/** Return what a proposal does as a sentence, with names instead of ids. */
function proposalSentence(proposal, names) {
  const quoted = (ids) => ids.map((id) => `“${nameOf(names, id)}”`).join(", ");
  switch (proposal.action) {
    case "MERGE": return `Merge ${quoted(proposal.memory_ids)} into “${proposal.content}”.`;
    case "ASSOCIATE": return `Link ${quoted(proposal.memory_ids)} to one another.`;
    case "UPDATE_ENTITY": {
      const values = Object.entries(proposal.set).map(([name, value]) => `${toWords(name)}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
      const aliases = proposal.add_aliases.length ? [`also called ${proposal.add_aliases.join(", ")}`] : [];
      return `Update ${nameOf(names, proposal.entity_id)} (${[...values, ...aliases].join("; ")}).`;
    }
    case "LINK_ENTITIES": return `Make ${nameOf(names, proposal.merge_id)} and ${nameOf(names, proposal.keep_id)} one entity.`;
    default: return `Create ${proposal.name} (${proposal.type}) and link ${quoted(proposal.memory_ids)} to it.`;
  }
}

/** Return the statements and names of what a run is about, by id: from its changes, else read one by one. */
async function loadNames(context, run) {
  const names = new Map();
  for (const { id, memory_id: memoryId, before, after } of run.changes) {
    const image = before ?? after;
    const text = image.fact ?? image.name;
    if (text && !names.has(memoryId ?? id)) names.set(memoryId ?? id, text).set(id, text);
  }
  if (run.user_id === null) return names;
  const read = async (kind, id, field) => {
    const found = await context.api.get(`users/${encodeURIComponent(run.user_id)}/${kind}/${encodeURIComponent(id)}`).catch((error) => {
      if (error.status !== 404) throw error;
    });
    if (found) names.set(id, found[field]);
  };
  const proposals = run.proposals.map(({ proposal }) => proposal);
  const memoryIds = [...proposals.flatMap((proposal) => proposal.memory_ids ?? []), ...run.contradictions.flatMap((found) => found.memory_ids)];
  const entityIds = proposals.flatMap((proposal) => [proposal.entity_id, proposal.keep_id, proposal.merge_id]).filter(Boolean);
  await Promise.all([
    ...[...new Set(memoryIds)].filter((id) => !names.has(id)).slice(0, 100).map((id) => read("memories", id, "content")),
    ...[...new Set(entityIds)].filter((id) => !names.has(id)).slice(0, 50).map((id) => read("entities", id, "name")),
  ]);
  return names;
}
