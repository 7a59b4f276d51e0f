// The members of a space and their roles; an owner or an admin adds, changes and removes them.

import { apiPath } from "../api.js";
import { announce, card, confirmInDialog, element, field, list, reportErrors, select } from "../dom.js";

export const ROLES = [["reader", "reader: reads"], ["writer", "writer: reads and writes"], ["owner", "owner: also changes the space"]];
const KINDS = [["user", "user"], ["key", "API key, by its id"]];

/** Return whether the space may be changed; `reader` is the user on whose behalf it is read, or null. */
export function mayChangeSpace(context, space, reader) {
  // Whether a key that is a member is the one of this page only the service knows: it refuses what that key may not do.
  return context.isAdmin || reader?.role === "owner" || space.members.some((member) => member.key && member.role === "owner");
}

/** Return the card with the members, in which they are changed where the space may be. */
export function membersCard(context, space, mayChange) {
  return card("members", "Members", {},
    list({ id: "member-list" }, space.members.map((member) => memberItem(context, space, member, mayChange)), "There are no members."),
    mayChange && addForm(context, space));
}

const kindOf = (member) => (member.user ? "user" : "key");
const idOf = (member) => member.user ?? member.key;
const memberPath = (space, id) => apiPath("spaces", space.id, "members", id);

function nameOf(context, member) {
  return member.user ?? `the key ${context.keyNames.get(member.key) ?? member.key}`;
}

function memberItem(context, space, member, mayChange) {
  const name = nameOf(context, member);
  const described = element("span", {}, element("span", { class: "name" }, name), !mayChange && element("span", { class: "hint block" }, member.role));
  if (!mayChange) return element("li", { class: "between" }, described);
  const role = select({ "aria-label": `Role of ${name}` }, ROLES.map(([value]) => [value, value]), member.role);
  return element("li", { class: "between" }, described,
    element("form", { onSubmit: (event) => {
      event.preventDefault();
      setRole(context, space, { id: idOf(member), kind: kindOf(member), role: role.value, name });
    } },
    element("div", { class: "inline" }, role,
      element("button", { type: "submit", "aria-label": `Change the role of ${name}` }, "Change"),
      element("button", { type: "button", "aria-label": `Remove ${name}`, onClick: () => remove(context, space, member, name) }, "Remove…"))));
}

async function setRole(context, space, { id, kind, role, name }) {
  if (!(await reportErrors(() => context.api.put(memberPath(space, id), { role }, { kind })))) return;
  await context.refresh();
  announce(`${name} is ${role} of ${space.title}.`);
}

async function remove(context, space, member, name) {
  const body = [element("p", {}, `With the next request “${name}” no longer finds what “${space.title}” holds. What the member saved stays.`)];
  if (!(await confirmInDialog({ title: "Remove this member?", body, confirmText: "Remove" }))) return;
  if (!(await reportErrors(() => context.api.delete(memberPath(space, idOf(member)), { kind: kindOf(member) })))) return;
  await context.refresh();
  announce(`${name} is no longer a member.`);
}

function addForm(context, space) {
  const id = element("input", { type: "text", id: "member-id", required: true, maxlength: 255, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const kind = select({ id: "member-kind" }, KINDS, "user");
  const role = select({ id: "member-role" }, ROLES, "reader");
  return element("form", { id: "member-form", class: "filters", onSubmit: (event) => {
    event.preventDefault();
    const added = id.value.trim();
    setRole(context, space, { id: added, kind: kind.value, role: role.value, name: nameOf(context, { [kind.value]: added }) });
  } },
  field("Id of the member", id), field("Kind", kind), field("Role", role),
  element("button", { type: "submit", class: "main" }, "Add"));
}
