// Consolidation runs: their proposals and changes, and undoing them.

import { latestOnly } from "./api.js";
import { announce, byId, element, pluralize, reportErrors, showError } from "./dom.js";
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

  /** Start a session with an admin's key, or with null end it. */
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

  /** List runs, the latest first; with a cursor, append the next page. */
  async list(cursor = null) {
    await reportErrors(async () => {
      const page = await this.#loadRuns(cursor);
      if (!page) return;
      this.#cursor = page.next_cursor;
      const rows = page.items.map(runItem);
      if (cursor) byId("run-list").append(...rows);
      else byId("run-list").replaceChildren(...(rows.length ? rows : [element("li", { class: "hint" }, "There are no runs yet.")]));
      byId("more-runs").hidden = !page.next_cursor;
      announce(cursor ? `${rows.length} more.` : `${pluralize(rows.length, "run")}${page.next_cursor ? " and more" : ""}.`);
      this.#markCurrent();
    });
  }

  #loadRun = latestOnly((signal, runId) => this.#api.getAdminData(`consolidations/${encodeURIComponent(runId)}`, {}, signal));

  /** Show one run with its proposals and changes; null shows none. */
  async showRun(runId) {
    if (runId === null) {
      this.#clear();
      return;
    }
    await reportErrors(async () => {
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
    byId("run-title").textContent = "No run selected";
    byId("run-body").replaceChildren(element("p", { class: "hint" }, "Select one from the list."));
    this.#markCurrent();
  }

  #markCurrent() {
    for (const row of byId("run-list").querySelectorAll("a")) row.toggleAttribute("aria-current", row.dataset.id === this.#run?.id);
  }

  #runDetails(run) {
    const summary = [badge(run), ` ${run.trigger}, ${run.user_id ?? "all users"}, ${run.executed} executed, ${run.refused} refused`];
    const canRollBack = !run.dry_run && run.change_count > 0 && (run.status === "succeeded" || run.parts.length > 0) && run.status !== "rolled_back";
    return [
      element("p", {}, ...summary),
      run.reason && element("p", { class: "hint" }, run.reason),
      run.undoes && element("p", { class: "hint" }, "This run undid another: ", runLink(run.undoes)),
      run.undone_by && element("p", { class: "hint" }, "Rolled back by ", runLink(run.undone_by)),
      canRollBack && element("button", { type: "button", class: "danger", id: "roll-back", onClick: () => this.#askConfirmation() }, "Roll back…"),
      element("h3", {}, `Proposals (${run.proposals.length})`),
      element("ol", { class: "plain" }, ...run.proposals.map(proposalItem)),
      element("h3", {}, `Changes (${run.changes.length})`),
      element("p", { class: "hint" }, "Hashes, search texts and other internal fields are not shown."),
      element("ol", { class: "plain changes" }, ...run.changes.map(changeItem)),
    ].filter(Boolean);
  }

  #askConfirmation(conflict = null) {
    this.#force = Boolean(conflict);
    byId("confirm-title").textContent = conflict ? "Later writes conflict with the rollback" : "Roll back this run?";
    byId("confirm-text").textContent = conflict
      ? `Rolling back would overwrite ${pluralize(conflict.errors.length, "later write")}:`
      : `${pluralize(this.#run.change_count, "change")} of the run of ${formatTime(this.#run.created_at)} will be undone.`;
    byId("conflicts").hidden = !conflict;
    byId("conflicts").replaceChildren(...(conflict?.errors ?? []).map((error) => element("li", {}, this.#conflictText(error))));
    byId("confirm-yes").textContent = conflict ? "Overwrite and roll back" : "Roll back";
    if (!byId("confirm").open) byId("confirm").showModal();
    byId("confirm-no").focus();
  }

  #conflictText({ loc, msg }) {
    const [kind, id] = loc;
    const conflicting = this.#run.changes.find((change) => change.kind === kind && change.id === id);
    return `${conflicting ? titleOf(conflicting) : `${TITLES[kind] ?? kind} ${id}`}: ${msg}`;
  }

  async #rollBack() {
    const runId = this.#run.id;
    byId("confirm-yes").disabled = true;
    try {
      const result = await this.#api.rollBack(runId, this.#force);
      byId("confirm").close();
      await Promise.all([this.list(), this.showRun(runId)]);
      const overwritten = result.conflicts.length ? `, ${pluralize(result.conflicts.length, "later write")} overwritten` : "";
      announce(`Rolled back: ${pluralize(result.restored, "change")} undone${overwritten}.`);
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

function runItem(run) {
  const details = `${run.trigger} · ${run.user_id ?? "all users"} · ${pluralize(run.change_count, "change")}${run.dry_run ? " · dry run" : ""}`;
  return element("li", {}, element("a", { class: "row", href: runAddress(run.id), "data-id": run.id },
    element("span", { class: "name" }, formatTime(run.created_at)), " ", badge(run), element("span", { class: "hint" }, details)));
}

const runAddress = (runId) => `#/runs/${encodeURIComponent(runId)}`;

const runLink = (runId) => element("a", { href: runAddress(runId) }, runId);

function badge(run) {
  return element("span", { class: `badge ${run.status}` }, run.status.replaceAll("_", " "));
}

function proposalItem({ proposal, verdict, reason }) {
  const { action, reason: proposalReason, ...fields } = proposal;
  return element("li", {},
    element("span", { class: "name" }, `${action} · ${verdict}`),
    element("span", { class: "hint" }, [proposalReason, reason].filter(Boolean).join(" · ")),
    element("details", {}, element("summary", {}, "Details"), element("pre", {}, JSON.stringify(fields, null, 2))));
}

function titleOf({ kind, id, before, after }) {
  const image = { ...before, ...after };
  const version = image.version ? `, version ${image.version}` : "";
  return `${TITLES[kind] ?? kind}${version}: ${image.fact ?? image.name ?? image.content ?? id}`;
}

function changeItem(change) {
  const { before, after } = change;
  const outcome = before === null ? "added" : after === null ? "removed" : "changed";
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort()
    .filter((name) => !INTERNAL_FIELDS.has(name) && JSON.stringify(before?.[name] ?? null) !== JSON.stringify(after?.[name] ?? null));
  const table = element("table", {},
    element("thead", {}, element("tr", {}, ...["Field", "Before", "After"].map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...fields.map((name) => element("tr", {},
      element("th", { scope: "row" }, name),
      element("td", { class: "before", "data-label": "Before" }, formatValue(before?.[name])),
      element("td", { class: "after", "data-label": "After" }, formatValue(after?.[name]))))));
  return element("li", {},
    element("details", { open: outcome === "changed" },
      element("summary", {}, element("span", { class: `badge ${outcome}` }, outcome), ` ${titleOf(change)}`), table));
}

function formatValue(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
