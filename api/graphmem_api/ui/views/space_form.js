// Making a space with its members, and changing its title and what it is about.

import { apiPath } from "../api.js";
import { announce, card, element, field, reportErrors, select } from "../dom.js";
import { address } from "../router.js";
import { ROLES } from "./space_members.js";

const MAX_TITLE = 200;
const MAX_ABOUT = 500;

/** Return the card in which an admin makes a space. */
export function createSpaceCard(context) {
  const id = idInput({ id: "space-id", required: true });
  const { title, about } = describingInputs({ title: "", about: "" });
  const rows = element("div", { id: "space-members" }, memberRow("owner"));
  const another = element("button", { type: "button", id: "another-member", onClick: () => {
    rows.append(memberRow("reader"));
    rows.lastChild.querySelector("input").focus();
  } }, "Another member");
  return card("create", "Create a space", {}, element("form", { id: "space-form", onSubmit: (event) => {
    event.preventDefault();
    const space = { title: title.value.trim(), about: about.value.trim(), members: membersIn(rows) };
    create(context, id.value.trim(), space);
  } },
  element("div", { class: "filters" }, field("Id, such as team-atlas", id), field("Title", title)),
  field("What belongs there, in a sentence that extraction reads", about),
  element("fieldset", { class: "axis" }, element("legend", {}, "Members"), rows, another),
  element("button", { type: "submit", class: "main" }, "Create")));
}

/** Return the card in which an owner or an admin changes what a space is called and what it is about. */
export function editSpaceCard(context, space) {
  const { title, about } = describingInputs(space);
  return card("edit", "Edit", {}, element("form", { id: "space-form", onSubmit: async (event) => {
    event.preventDefault();
    const changed = { title: title.value.trim(), about: about.value.trim() };
    if (!(await reportErrors(() => context.api.put(apiPath("spaces", space.id), changed)))) return;
    await context.refresh();
    announce("Space saved.");
  } },
  field("Title", title), field("What belongs there, in a sentence that extraction reads", about),
  element("button", { type: "submit", class: "main" }, "Save")));
}

async function create(context, id, space) {
  const isDone = await reportErrors(async () => {
    const { items } = await context.api.get("spaces");  // an admin's are all there are: making one again would change it
    if (items.some((other) => other.id === id)) throw new Error(`There is a space “${id}” already: choose another id, or change that one on its page.`);
    await context.api.put(apiPath("spaces", id), space);
  });
  if (!isDone) return;
  await context.open(address({ view: "spaces", id }));
  announce(`Created the space ${space.title}.`);
}

function describingInputs({ title, about }) {
  return {
    title: element("input", { type: "text", id: "space-name", required: true, maxlength: MAX_TITLE, autocomplete: "off", value: title }),
    about: element("textarea", { id: "space-about", rows: 2, maxlength: MAX_ABOUT }, about),
  };
}

function idInput(attributes) {
  return element("input", { type: "text", maxlength: 255, autocomplete: "off", autocapitalize: "none", spellcheck: "false", ...attributes });
}

function memberRow(role) {
  return element("div", { class: "filters" }, field("Id of a user", idInput({})), field("Role", select({}, ROLES, role)));
}

/** Return the members that the rows name; a row without an id names nobody. */
function membersIn(rows) {
  return [...rows.children]
    .map((row) => ({ user: row.querySelector("input").value.trim(), role: row.querySelector("select").value }))
    .filter((member) => member.user);
}
