// The spaces that the key may read; an admin makes further ones.

import { announce, card, element, list, pluralize } from "../dom.js";
import { address } from "../router.js";
import { createSpaceCard } from "./space_form.js";

export async function spacesView(context) {
  const { items } = await context.api.get("spaces");
  context.root.append(card("spaces", "Spaces", { level: 1 },
    element("p", { class: "hint" }, "A space is a memory that several users and keys share."),
    list({ id: "space-list", "aria-label": "Spaces" }, items.map(spaceItem), "This key cannot read any space.")));
  if (context.isAdmin) context.root.append(createSpaceCard(context));
  announce(`${pluralize(items.length, "space")}.`);
}

function spaceItem(space) {
  const details = [space.id, pluralize(space.members.length, "member"), space.about];
  return element("li", {}, element("a", { class: "row", href: address({ view: "spaces", id: space.id }) },
    element("span", { class: "name" }, space.title), element("span", { class: "hint" }, details.filter(Boolean).join(" · "))));
}
