// Consolidation runs: the list, and starting one.

import { card, confirmInDialog, element, field, pluralize, reportErrors } from "../dom.js";
import { PagedList } from "../paged_list.js";
import { address } from "../router.js";
import { formatTime } from "../times.js";
import { actorName, badge, triggerWord } from "../wording.js";

const PAGE_SIZE = 20;

export async function runsView(context) {
  const user = context.query.get("user") ?? "";
  const runs = new PagedList(context, {
    id: "run-list", nouns: ["run", "runs"], emptyText: () => (user ? `There are no runs of “${user}”.` : "There are no runs yet."),
    load: (cursor) => context.api.get("admin/consolidations", { user_id: user, limit: PAGE_SIZE, cursor }), toItem: (run) => runItem(context, run),
  });
  context.root.append(
    card("runs", "Consolidation runs", { level: 1 }, filterForm(context, user), runs.node),
    card("start", "Start a run", {},
      element("p", {}, "A run merges duplicates and links what belongs together. A dry run only shows what would change."), startForm(context, user)));
  await runs.fill();
}

function filterForm(context, user) {
  const input = element("input", { type: "search", id: "runs-user", value: user, autocomplete: "off", spellcheck: "false" });
  return element("form", { class: "filters", onSubmit: (event) => { event.preventDefault(); context.openQuery({ user: input.value.trim() }); } },
    field("User id (empty: all)", input), element("button", { type: "submit" }, "Show"));
}

function startForm(context, user) {
  const input = element("input", { type: "text", id: "start-user", value: user, autocomplete: "off", spellcheck: "false" });
  const start = async (isDryRun) => {
    const userId = input.value.trim() || null;
    const whom = userId ?? "all users of the tenant";
    const body = [element("p", {}, `The memories of ${whom} are consolidated. The run can be rolled back.`)];
    if (!isDryRun && !(await confirmInDialog({ title: "Start a consolidation?", body, confirmText: "Start", isDangerous: false }))) return;
    await reportErrors(async () => {
      const { run_id: id } = await context.api.post("admin/consolidations", { user_id: userId, dry_run: isDryRun });
      await context.open(address({ view: "runs", id }));
    });
  };
  return element("form", { id: "start-form", class: "filters", onSubmit: (event) => { event.preventDefault(); start(true); } },
    field("User id (empty: all)", input),
    element("button", { type: "submit", id: "start-dry-run", class: "main" }, "Dry run"),
    element("button", { type: "button", id: "start-run", onClick: () => start(false) }, "Start a run…"));
}

function runItem(context, run) {
  const details = [triggerWord(run.trigger), run.user_id ?? "all users", `by ${actorName(run.actor, context.keyNames)}`, pluralize(run.change_count, "change"), run.dry_run && "dry run"];
  return element("li", {}, element("a", { class: "row", href: address({ view: "runs", id: run.id }), "data-id": run.id },
    element("span", { class: "name" }, formatTime(run.created_at)), " ", badge(run.status), element("span", { class: "hint" }, details.filter(Boolean).join(" · "))));
}
