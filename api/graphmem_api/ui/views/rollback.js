// Undoing a run: first what would happen, in sentences, then a confirmation.

import { announce, card, confirmInDialog, element, list, pluralize, reportErrors } from "../dom.js";
import { titleOf } from "./run_changes.js";

const SECTIONS = [
  ["goes_back", "Removed", (name) => `${name} was written by the run and is removed.`],
  ["comes_back", "Restored", (name) => `${name} gets its earlier state back.`],
  ["stays", "Unchanged", (name) => `${name} stays as it is now.`],
];
const KINDS = { fact: "The memory", entity: "The entity", episode: "The message", mention: "A mention" };
const GONE = 410;

/** Return the card that offers to undo a run; none where there is nothing to undo, or no longer. */
export async function rollbackCard(context, run) {
  const isUndoable = !run.dry_run && (run.status === "succeeded" || run.parts.length > 0) && !run.undone_by && (run.change_count > 0 || run.parts.length > 0);
  if (!isUndoable || run.status === "rolled_back") return [];
  const path = `admin/consolidations/${encodeURIComponent(run.id)}/rollback`;
  let preview;
  try {
    preview = await context.api.post(path, { dry_run: true });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const text = error.status === GONE ? "This run can no longer be undone." : error.message;
    return [card("rollback", "Rollback", {}, element("p", { class: "hint" }, text))];
  }
  return [card("rollback", "What a rollback would do", {}, ...previewElements(run, preview),
    element("button", { type: "button", class: "danger", id: "roll-back", onClick: () => rollBack(context, run, preview, path) }, "Roll back…"))];
}

function previewElements(run, preview) {
  const texts = new Map(run.changes.map((change) => [change.id, titleOf(change)]));
  const sections = SECTIONS.filter(([name]) => sentences(preview[name], () => "").length).map(([name, title, sentence]) => element("div", { id: name.replace("_", "-") },
    element("h3", {}, title), list({}, sentences(preview[name], sentence).map((text) => element("li", {}, text)), "")));
  const conflicts = preview.conflicts.map((conflict) => element("li", {}, `${texts.get(conflict.id) ?? KINDS[conflict.kind]}: ${conflict.detail}`));
  return [
    ...sections,
    conflicts.length > 0 && element("div", { id: "conflicts" },
      element("h3", {}, `Conflicts (${conflicts.length})`),
      element("p", {}, "These were written after the run. A rollback would overwrite them:"), list({}, conflicts, "")),
  ].filter(Boolean);
}

/** Return one sentence for each element that has a statement or a name; several versions of a memory are one. */
function sentences(elements, sentence) {
  const named = elements.filter(({ kind, text }) => kind !== "mention" && text);
  return [...new Set(named.map(({ kind, text }) => sentence(`${KINDS[kind]} “${text}”`)))];
}

async function rollBack(context, run, preview, path) {
  const { conflicts } = preview;
  const body = [element("p", {}, `${pluralize(run.change_count, "change")} will be undone.`),
    conflicts.length > 0 && element("p", {}, `${pluralize(conflicts.length, "later write")} will be overwritten.`)].filter(Boolean);
  const confirmText = conflicts.length ? "Overwrite and roll back" : "Roll back";
  if (!(await confirmInDialog({ title: "Roll back this run?", body, confirmText }))) return;
  let result;
  if (!(await reportErrors(async () => { result = await context.api.post(path, { force: conflicts.length > 0 }); }))) return;
  await context.refresh();
  const overwritten = result.conflicts.length ? `, ${pluralize(result.conflicts.length, "later write")} overwritten` : "";
  announce(`Rolled back: ${pluralize(result.restored, "change")} undone${overwritten}.`);
}
