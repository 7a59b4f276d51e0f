// Correcting a memory, undoing a replacement, and forgetting.

import { announce, card, confirmInDialog, element, field, reportErrors } from "../dom.js";
import { readLocalText, toLocalText } from "../times.js";
import { stateOf } from "../wording.js";

/** Return the card with what an admin may do with a memory. */
export function editCard(context, memory) {
  const state = stateOf(memory);
  const isOver = state === "deleted" || state === "replaced" || state === "archived";
  return card("edit", "Edit", {},
    memory.immutable && element("p", { class: "hint" }, "This memory is immutable: it can only be erased."),
    !isOver && !memory.immutable && editForm(context, memory),
    element("div", { class: "buttons" },
      memory.superseded_by && element("button", { type: "button", id: "revert", onClick: () => revert(context, memory) }, "Undo the replacement…"),
      !isOver && !memory.immutable && element("button", { type: "button", id: "delete", onClick: () => end(context, memory) }, "Delete…"),
      element("button", { type: "button", id: "erase", class: "danger", onClick: () => erase(context, memory) }, "Erase everywhere…")));
}

function editForm(context, memory) {
  const asInput = (time) => (time ? toLocalText(new Date(time)) : "");
  const inputs = {
    content: element("textarea", { name: "content", rows: 2, required: true, maxlength: 8000 }, memory.content),
    importance: element("input", { type: "number", name: "importance", min: 0, max: 1, step: 0.05, value: memory.importance }),
    valid_at: element("input", { type: "datetime-local", name: "valid_at", step: 1, value: asInput(memory.valid_at) }),
    invalid_at: element("input", { type: "datetime-local", name: "invalid_at", step: 1, value: asInput(memory.invalid_at) }),
  };
  return element("form", { id: "edit-form", onSubmit: async (event) => {
    event.preventDefault();
    const patch = changedFields(memory, inputs, asInput);
    if (Object.keys(patch).length === 0) {
      announce("Nothing was changed.");
      return;
    }
    await act(context, () => context.api.patch(context.userPath("memories", memory.id), patch, { "If-Match": `"${memory.version}"` }), "Corrected: there is a new version.");
  } },
  element("div", { class: "filters" }, field("Statement", inputs.content), field("Importance, 0 to 1", inputs.importance),
    field("True from", inputs.valid_at), field("True until", inputs.invalid_at)),
  element("button", { type: "submit", class: "main" }, "Save as a new version"));
}

function changedFields(memory, inputs, asInput) {
  const patch = {};
  if (inputs.content.value.trim() !== memory.content) patch.content = inputs.content.value.trim();
  if (Number(inputs.importance.value) !== memory.importance) patch.importance = Number(inputs.importance.value);
  for (const name of ["valid_at", "invalid_at"]) {
    if (inputs[name].value !== asInput(memory[name])) patch[name] = readLocalText(inputs[name].value)?.toISOString() ?? null;
  }
  return patch;
}

async function revert(context, memory) {
  const body = [element("p", {}, `“${memory.content}” becomes current again, and the memory that replaced it ends. Both stay in history.`)];
  if (!(await confirmInDialog({ title: "Undo the replacement?", body, confirmText: "Undo it", isDangerous: false }))) return;
  await act(context, () => context.api.post(context.userPath("memories", memory.id, "revert")), "The replacement is undone.");
}

async function end(context, memory) {
  const body = [element("p", {}, `“${memory.content}” is no longer found. It stays in history.`)];
  if (!(await confirmInDialog({ title: "Delete this memory?", body, confirmText: "Delete" }))) return;
  await act(context, () => context.api.delete(context.userPath("memories", memory.id)), "Deleted.");
}

async function erase(context, memory) {
  const body = [element("p", {}, `Every version of “${memory.content}” is erased everywhere. This cannot be undone.`)];
  if (!(await confirmInDialog({ title: "Erase this memory everywhere?", body, confirmText: "Erase", required: "erase" }))) return;
  const isDone = await reportErrors(() => context.api.delete(context.userPath("memories", memory.id), { hard: true }));
  if (!isDone) return;
  await context.open(context.link("memories"));
  announce("Erased.");
}

async function act(context, work, message) {
  if (!(await reportErrors(work))) return;
  await context.refresh();
  announce(message);
}
