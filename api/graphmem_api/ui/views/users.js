// The users of the tenant, and the page for a user that nothing is stored for.

import { latestOnly } from "../api.js";
import { card, element, field, list, pluralize, reportErrors } from "../dom.js";
import { PagedList } from "../paged_list.js";
import { address } from "../router.js";
import { formatTime } from "../times.js";

const PAGE_SIZE = 100;
const TYPING_MS = 200;

/** List the users that the key gives access to, with a search by a part of their id. */
export async function usersView(context) {
  const input = element("input", { type: "search", id: "find-user", autocomplete: "off", spellcheck: "false", value: context.query.get("q") ?? "" });
  const load = latestOnly((signal, query, cursor) => context.api.withSignal(signal).get("users", { query, limit: PAGE_SIZE, cursor }));
  const users = new PagedList(context, {
    id: "user-list", attributes: { "aria-label": "Users" }, nouns: ["user", "users"], emptyText: () => (input.value.trim() ? `No user id contains “${input.value.trim()}”.` : "There are no users yet."),
    load: (cursor) => load(input.value.trim(), cursor), toItem: userItem,
  });
  let timer = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      context.keepQuery({ q: input.value.trim() });
      reportErrors(() => users.fill());
    }, TYPING_MS);
  });
  context.root.append(card("users", "Users", { level: 1 }, field("Part of a user id", input), users.node));
  await users.fill();
}

function userItem(user) {
  const counts = [pluralize(user.memory_count, "memory", "memories"), pluralize(user.session_count, "session")];
  const times = user.last_write_at && element("span", { class: "together-text" }, `last change ${formatTime(user.last_write_at)}`);
  return element("li", {}, element("a", { class: "row", href: address({ user: user.user_id, view: "overview" }) },
    element("span", { class: "name" }, user.user_id), element("span", { class: "hint" }, counts.join(" · "), times && " · ", times)));
}

/** Say that nothing is stored for the user of the address, and name similar ones. */
export async function unknownUserView(context) {
  const similar = await similarUsers(context);
  context.root.append(element("section", { class: "card", "aria-labelledby": "unknown-title" },
    element("h1", { id: "unknown-title", tabindex: "-1" }, "Unknown user"),
    element("p", {}, `Nothing is stored for the user “${context.user}” that this key has access to.`),
    similar.length > 0 && element("p", {}, "Did you mean one of these?"),
    similar.length > 0 && list({ id: "similar-users" }, similar.map(userItem), ""),
    element("p", {}, element("a", { href: address({ view: "users" }) }, "All users"))));
}

/** Return users whose id contains the one in the address, or its beginning. */
async function similarUsers(context) {
  for (const query of [context.user, context.user.slice(0, Math.ceil(context.user.length / 2)), context.user.slice(0, 2)]) {
    const { items } = await context.api.get("users", { query, limit: 5 });
    if (items.length) return items;
  }
  return [];
}
