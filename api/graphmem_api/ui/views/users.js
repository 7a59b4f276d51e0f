// The users of the tenant, and the page for a user that nothing is stored for.

import { latestOnly } from "../api.js";
import { announce, element, field, list, pluralize, reportErrors } from "../dom.js";
import { address } from "../router.js";
import { formatTime } from "../times.js";

const TYPING_MS = 200;

/** List the users that the key gives access to, with a search by a part of their id. */
export async function usersView(context) {
  const results = element("div", {});
  const input = element("input", { type: "search", id: "find-user", autocomplete: "off", spellcheck: "false", value: context.query.get("q") ?? "" });
  let timer = null;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => reportErrors(() => fill()), TYPING_MS);
  });
  const load = latestOnly((signal, query) => context.api.withSignal(signal).get("users", { query, limit: 100 }));
  async function fill() {
    const query = input.value.trim();
    context.keepQuery({ q: query });
    const page = await load(query);
    if (!page || context.signal.aborted) return;
    announce(`${pluralize(page.items.length, "user")}${page.next_cursor ? " and more: search for a part of the id" : ""}.`);
    results.replaceChildren(list({ id: "user-list", "aria-label": "Users" }, page.items.map(userItem),
      query ? `No user's id contains “${query}”.` : "Nothing is stored yet."));
  }
  context.root.append(element("section", { class: "card", "aria-labelledby": "users-title" },
    element("h1", { id: "users-title", tabindex: "-1" }, "Users"), field("Part of a user id", input), results));
  await fill();
}

function userItem(user) {
  const counts = [pluralize(user.memory_count, "memory", "memories"), pluralize(user.session_count, "session")];
  const times = user.last_write_at ? `last change ${formatTime(user.last_write_at)}` : "";
  return element("li", {}, element("a", { class: "row", href: address({ user: user.user_id, view: "overview" }) },
    element("span", { class: "name" }, user.user_id), element("span", { class: "hint" }, [...counts, times].filter(Boolean).join(" · "))));
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
