// Consolidation runs: what each proposed and changed, and the way back.

import { latestOnly } from "./api.js";
import { byId, showError, pluralize, element, announce } from "./dom.js";
import { formatTime } from "./time_axis.js";

const INTERNAL_FIELDS = new Set([
  "active_hash", "content_hash", "group_id", "group_key", "search_text", "alias_keys", "alias_text", "name_key",
  "valid_from", "valid_to", "known_from", "known_to", "memory_id", "uuid",
]);
const TITLES = { fact: "Memory", entity: "Entity", episode: "Message", mention: "Mention" };

export class RunsView {
  #api = null;
  #cursor = null;
  #run = null;
  #force = false;

  constructor() {
    byId("runs-all").addEventListener("change", () => this.list());
    byId("more-runs").addEventListener("click", () => this.list(this.#cursor));
    byId("confirm-no").addEventListener("click", () => byId("confirm").close());
    byId("confirm-yes").addEventListener("click", () => this.#rollBack());
  }

  /** Begin with an admin's key, or end with null. */
  setSession(api) {
    this.#api = api;
    this.#clear();
    byId("run-list").replaceChildren();
    byId("confirm").close();
  }

  #loadRuns = latestOnly((signal, cursor) => {
    const user = byId("runs-all").checked ? null : this.#api.user;
    return this.#api.getAdminData("consolidations", { user_id: user, limit: 20, cursor }, signal);
  });

  /** List runs, the latest first; with a cursor, more of them. */
  async list(cursor = null) {
    await runReportingErrors(async () => {
      const page = await this.#loadRuns(cursor);
      if (!page) return;
      this.#cursor = page.next_cursor;
      const rows = page.items.map((each) => element("li", {}, element("a", { class: "row", href: `#/runs/${encodeURIComponent(each.id)}`, "data-id": each.id },
        element("span", { class: "name" }, formatTime(each.created_at)), " ", badge(each),
        element("span", { class: "hint" }, `${each.trigger} · ${each.user_id ?? "all users"} · ${pluralize(each.change_count, "change")}${each.dry_run ? " · dry run" : ""}`))));
      if (cursor) byId("run-list").append(...rows);
      else byId("run-list").replaceChildren(...(rows.length ? rows : [element("li", { class: "hint" }, "There are no runs yet.")]));
      byId("more-runs").hidden = !page.next_cursor;
      announce(cursor ? `${rows.length} more.` : `${pluralize(rows.length, "run")}${page.next_cursor ? " and more" : ""}.`);
      this.#markCurrent();
    });
  }

  #loadRun = latestOnly((signal, runId) => this.#api.getAdminData(`consolidations/${encodeURIComponent(runId)}`, {}, signal));

  /** Show one run with its proposals and changes; null clears. */
  async showRun(runId) {
    if (runId === null) {
      this.#clear();
      return;
    }
    await runReportingErrors(async () => {
      const run = await this.#loadRun(runId);
      if (!run) return;
      this.#run = run;
      byId("run-title").textContent = `Run of ${formatTime(run.created_at)}`;
      byId("run-body").replaceChildren(...this.#runDetails(run));
      this.#markCurrent();
      byId("run-title").focus();
    });
  }

  #clear() {
    this.#run = null;
    byId("run-title").textContent = "No run chosen";
    byId("run-body").replaceChildren(element("p", { class: "hint" }, "Choose one from the list."));
    this.#markCurrent();
  }

  #markCurrent() {
    for (const row of byId("run-list").querySelectorAll("a")) row.toggleAttribute("aria-current", row.dataset.id === this.#run?.id);
  }

  #runDetails(run) {
    const summed = [badge(run), ` ${run.trigger}, ${run.user_id ?? "all users"}, ${run.executed} carried out, ${run.refused} refused`];
    const undoable = !run.dry_run && run.change_count > 0 && (run.status === "succeeded" || run.parts.length > 0) && run.status !== "rolled_back";
    return [
      element("p", {}, ...summed),
      run.reason && element("p", { class: "hint" }, run.reason),
      run.undoes && element("p", { class: "hint" }, "This run took back another: ", element("a", { href: `#/runs/${encodeURIComponent(run.undoes)}` }, run.undoes)),
      run.undone_by && element("p", { class: "hint" }, "Rolled back by ", element("a", { href: `#/runs/${encodeURIComponent(run.undone_by)}` }, run.undone_by)),
      undoable && element("button", { type: "button", class: "danger", id: "roll-back", onClick: () => this.#askConfirmation() }, "Roll back…"),
      element("h3", {}, `Proposals (${run.proposals.length})`),
      element("ol", { class: "plain" }, ...run.proposals.map(proposalItem)),
      element("h3", {}, `Changes (${run.changes.length})`),
      element("p", { class: "hint" }, "Hashes, search texts and other bookkeeping are left out."),
      element("ol", { class: "plain changes" }, ...run.changes.map(changeItem)),
    ].filter(Boolean);
  }

  #askConfirmation(problem = null) {
    this.#force = Boolean(problem);
    byId("confirm-title").textContent = problem ? "Later writes are in the way" : "Roll back this run?";
    byId("confirm-text").textContent = problem
      ? `${problem.message} Rolling back anyway overwrites them.`
      : `${this.#run.change_count} things go back to what they were before the run of ${formatTime(this.#run.created_at)}.`;
    byId("conflicts").hidden = !problem;
    byId("conflicts").replaceChildren(...(problem?.errors ?? []).map((each) => element("li", {}, this.#conflictText(each))));
    byId("confirm-yes").textContent = problem ? "Overwrite and roll back" : "Roll back";
    if (!byId("confirm").open) byId("confirm").showModal();
    byId("confirm-no").focus();
  }

  #conflictText({ loc, msg }) {
    const [kind, id] = loc;
    const found = this.#run.changes.find((each) => each.kind === kind && each.id === id);
    return `${found ? titleOf(found) : `${TITLES[kind] ?? kind} ${id}`}: ${msg}`;
  }

  async #rollBack() {
    const runId = this.#run.id;
    byId("confirm-yes").disabled = true;
    try {
      const done = await this.#api.rollBack(runId, this.#force);
      byId("confirm").close();
      await Promise.all([this.list(), this.showRun(runId)]);
      announce(`Rolled back: ${done.restored} things are as they were${done.conflicts.length ? `, ${done.conflicts.length} later writes overwritten` : ""}.`);
    } catch (error) {
      if (error.status === 409 && error.errors.length && !this.#force) this.#askConfirmation(error);
      else {
        byId("confirm").close();
        showError(error);
      }
    } finally {
      byId("confirm-yes").disabled = false;
    }
  }
}

function badge(run) {
  return element("span", { class: `badge ${run.status}` }, run.status.replaceAll("_", " "));
}

function proposalItem({ proposal: given, verdict, reason }) {
  const { action, reason: why, ...rest } = given;
  return element("li", {},
    element("span", { class: "name" }, `${action} · ${verdict}`),
    element("span", { class: "hint" }, [why, reason].filter(Boolean).join(" · ")),
    element("details", {}, element("summary", {}, "What it asks for"), element("pre", {}, JSON.stringify(rest, null, 2))));
}

function titleOf({ kind, id, before, after }) {
  const image = { ...before, ...after };
  const which = image.version ? `, version ${image.version}` : "";
  return `${TITLES[kind] ?? kind}${which}: ${image.fact ?? image.name ?? image.content ?? id}`;
}

function changeItem(each) {
  const { before, after } = each;
  const outcome = before === null ? "made" : after === null ? "removed" : "changed";
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort()
    .filter((name) => !INTERNAL_FIELDS.has(name) && JSON.stringify(before?.[name] ?? null) !== JSON.stringify(after?.[name] ?? null));
  const table = element("table", {},
    element("thead", {}, element("tr", {}, ...["Field", "Before", "After"].map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...fields.map((name) => element("tr", {},
      element("th", { scope: "row" }, name),
      element("td", { class: "was", "data-label": "Before" }, formatValue(before?.[name])),
      element("td", { class: "is", "data-label": "After" }, formatValue(after?.[name]))))));
  return element("li", {},
    element("details", { open: outcome === "changed" },
      element("summary", {}, element("span", { class: `badge ${outcome}` }, outcome), ` ${titleOf(each)}`), table));
}

function formatValue(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function runReportingErrors(work) {
  try {
    await work();
    showError(null);
  } catch (error) {
    showError(error);
  }
}
