// API keys: the list, creating one, revoking one.

import { announce, card, confirmInDialog, element, field, list, reportErrors, select } from "../dom.js";
import { formatTime } from "../times.js";

const ROLES = [["agent", "agent: reads and writes"], ["analyst", "analyst: reads"], ["admin", "admin: everything in the tenant"]];

export async function keysView(context) {
  const { items } = await context.api.get("admin/keys");
  const secret = element("div", {});
  context.root.append(
    card("keys", "API keys", { level: 1 }, list({ id: "key-list" }, items.map((key) => keyItem(context, key)), "There are no keys.")),
    card("create", "Create a key", {}, createForm(context, secret), secret));
}

function keyItem(context, key) {
  const users = key.users ? `only ${key.users.join(", ")}` : "all users";
  return element("li", { class: "between" },
    element("span", {}, element("span", { class: "name" }, key.name), element("span", { class: "hint block" }, `${key.role} · ${users} · created ${formatTime(key.created_at)}`)),
    element("button", { type: "button", "aria-label": `Revoke ${key.name}`, onClick: () => revoke(context, key) }, "Revoke…"));
}

async function revoke(context, key) {
  const body = [element("p", {}, `Programs that use the key “${key.name}” lose access immediately.`)];
  if (!(await confirmInDialog({ title: "Revoke this key?", body, confirmText: "Revoke" }))) return;
  if (!(await reportErrors(() => context.api.delete(`admin/keys/${encodeURIComponent(key.id)}`)))) return;
  await context.refresh();
  announce(`Revoked the key ${key.name}.`);
}

function createForm(context, secret) {
  const name = element("input", { type: "text", id: "key-name", required: true, maxlength: 100, autocomplete: "off" });
  const role = select({ id: "key-role" }, ROLES, "agent");
  const users = element("input", { type: "text", id: "key-users", autocomplete: "off", spellcheck: "false" });
  return element("form", { id: "key-form", class: "filters", onSubmit: (event) => {
    event.preventDefault();
    reportErrors(async () => {
      const bound = users.value.split(",").map((user) => user.trim()).filter(Boolean);
      const created = await context.api.post("admin/keys", { name: name.value.trim(), role: role.value, ...(bound.length && { users: bound }) });
      secret.replaceChildren(
        element("p", {}, `The key “${created.name}”. Copy it now: it is not shown again.`),
        element("input", { type: "text", id: "new-key", readonly: true, value: created.key, "aria-label": "The new key", onFocus: (focused) => focused.target.select() }));
      secret.querySelector("input").focus();
      name.value = "";
      context.root.querySelector("#key-list").append(keyItem(context, created));
      announce("Key created.");
    });
  } },
  field("Name", name), field("Role", role), field("Users, separated by commas (empty: all)", users),
  element("button", { type: "submit", class: "main" }, "Create"));
}
