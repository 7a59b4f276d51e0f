// The explorer page: signing in, and switching between views. The key stays in the session storage of this tab.

import { ApiClient, apiPath } from "./api.js";
import { announce, byId, element, reportErrors, showError } from "./dom.js";
import { Router, address } from "./router.js";
import { timeZone } from "./times.js";
import { compareView } from "./views/compare.js";
import { entitiesView } from "./views/entities.js";
import { entityView } from "./views/entity.js";
import { keysView } from "./views/keys.js";
import { memoriesView } from "./views/memories.js";
import { memoryView } from "./views/memory.js";
import { overviewView } from "./views/overview.js";
import { runView } from "./views/run.js";
import { runsView } from "./views/runs.js";
import { searchView } from "./views/search.js";
import { sessionView } from "./views/session.js";
import { sessionsView } from "./views/sessions.js";
import { spaceView } from "./views/space.js";
import { spacesView } from "./views/spaces.js";
import { unknownUserView, usersView } from "./views/users.js";

const SESSION_STORAGE_KEY = "graphmem.session";
const USER_VIEWS = {
  overview: { title: "Overview", list: overviewView },
  search: { title: "Search", list: searchView },
  memories: { title: "Memories", list: memoriesView, one: memoryView },
  entities: { title: "Entities", list: entitiesView, one: entityView },
  sessions: { title: "Sessions", list: sessionsView, one: sessionView },
  compare: { title: "Compare times", list: compareView },
};
const TENANT_VIEWS = {
  users: { title: "Users", list: usersView },
  spaces: { title: "Spaces", list: spacesView, one: spaceView },
  runs: { title: "Runs", list: runsView, one: runView, isForAdmins: true },
  keys: { title: "Keys", list: keysView, isForAdmins: true },
};

let session = null;
let running = null;
const router = new Router(showView);

/** What a view works with: the API, the user, the address, and the element to fill. */
class ViewContext {
  constructor(found, root, signal) {
    Object.assign(this, found, { root, signal, api: session.api.withSignal(signal) });
    this.isAdmin = session.keyNames !== null;
    this.keyNames = session.keyNames ?? new Map();
    /** How many rows of its list the view had when it was left. */
    this.shownRows = history.state?.rows ?? 0;
  }

  /** Return a context of the same view that reads as another user. */
  forUser(user) {
    return Object.assign(Object.create(this), { user });
  }

  /** Return an API path below the user's. */
  userPath(...segments) {
    return apiPath("users", this.user, ...segments);
  }

  /** Return the address of a view of the same user. */
  link(view, id = null, query = {}) {
    return address({ user: this.user, view, id, query });
  }

  open(hash) {
    return router.navigate(hash);
  }

  refresh() {
    return router.refresh();
  }

  /** Show this view with another query, which the back button leaves. */
  openQuery(query) {
    return router.navigate(address({ user: this.user, view: this.view, id: this.id, query }));
  }

  /** Keep a query in the address without showing the view again. */
  keepQuery(query) {
    router.replace(address({ user: this.user, view: this.view, id: this.id, query }));
  }

  /** Check again whether the user exists: they were forgotten. */
  dropKnownUser() {
    session.user = null;
  }

  /** Keep the number of rows with the address, for the way back. */
  rememberRows(rows) {
    if (!this.signal.aborted) history.replaceState({ ...history.state, rows }, "");
  }

  setTitle(title) {
    document.title = `${title} · graphmem explorer`;
  }
}

byId("time-zone").textContent = `Times are in ${timeZone}.`;
byId("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [key, user] = [byId("key").value.trim(), byId("user").value.trim()];
  reportErrors(async () => {
    await signIn(key);
    sessionStorage.setItem(SESSION_STORAGE_KEY, JSON.stringify({ key }));
    byId("key").value = "";
    if (user) await router.navigate(address({ user, view: "overview" }));
    else await router.refresh();
  });
});
byId("sign-out").addEventListener("click", signOut);
addEventListener("unhandledrejection", (event) => showError(event.reason));

const stored = JSON.parse(sessionStorage.getItem(SESSION_STORAGE_KEY) ?? "null") ?? takeHandedKey();
if (stored) signIn(stored.key).then(() => router.refresh()).catch((error) => { signOut(); showError(error); });
else showSignIn();

/** Keep the key that `graphmem open` puts after `#key=`, and take it out of the address; null where there is none. */
function takeHandedKey() {
  const [, encoded] = /^#key=(.+)$/.exec(location.hash) ?? [];
  if (!encoded) return null;
  const handed = { key: decodeURIComponent(encoded) };
  history.replaceState(null, "", location.pathname);
  sessionStorage.setItem(SESSION_STORAGE_KEY, JSON.stringify(handed));
  return handed;
}

/** Start a session with a key; one that may list keys is an admin's. */
async function signIn(key) {
  const api = new ApiClient(key);
  const { items } = await api.get("users", { limit: 2 });
  session = { api, keyNames: await loadKeyNames(api), onlyUser: items.length === 1 ? items[0].user_id : null };
  byId("sign-in").hidden = true;
  byId("sign-out").hidden = false;
}

/** Return the names of the tenant's keys by id, or null for a key that may not list them. */
async function loadKeyNames(api) {
  try {
    const { items } = await api.get("admin/keys");
    return new Map(items.map((key) => [key.id, key.name]));
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** End the session and remove its data from the page. */
function signOut() {
  sessionStorage.clear();
  session = null;
  running?.abort();
  byId("view").replaceChildren();
  byId("views").replaceChildren();
  byId("who").textContent = byId("who").title = "";
  byId("sign-out").hidden = true;
  history.replaceState(null, "", location.pathname);
  document.title = "graphmem explorer";
  showSignIn();
  showError(null);
  announce("Signed out.");
}

function showSignIn() {
  byId("sign-in").hidden = false;
  byId("key").focus();
}

/** Show the view of an address in a new element; the calls of the last view are aborted. Return whether it was completed. */
async function showView(found, { isNavigation }) {
  if (!session) return false;
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const root = element("div", { "aria-busy": "true" });
  byId("view").replaceChildren(root);
  announce("");
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  const target = { ...found, user: found.user, view: found.view ?? (found.user ? "overview" : null) };
  if (target.view === null) {
    Object.assign(target, session.onlyUser ? { user: session.onlyUser, view: "overview" } : { view: "users" });
    router.replace(address(target));
  }
  showNavigation(target);
  const isDone = await reportErrors(async () => {
    const render = await chooseView(target);
    const context = new ViewContext(target, root, signal);
    await render(context);
  });
  if (signal.aborted) return false;
  root.removeAttribute("aria-busy");
  if (isNavigation && isDone && !root.contains(document.activeElement)) root.querySelector("h1")?.focus({ preventScroll: true });
  return true;
}

async function chooseView({ user, view, id }) {
  const views = user === null ? TENANT_VIEWS : USER_VIEWS;
  const chosen = views[view] ?? views.users ?? views.overview;
  document.title = `${chosen.title} · graphmem explorer`;
  if (user !== null && !(await isKnownUser(user))) return unknownUserView;
  return id !== null && chosen.one ? chosen.one : chosen.list;
}

/** Return whether anything is stored for the user that the key gives access to, or the user is a member of a space. */
async function isKnownUser(user) {
  if (session.user === user) return true;
  const { items } = await session.api.list("users", { query: user }, 400);
  const isKnown = items.some((found) => found.user_id === user) || (await isMember(user));
  if (isKnown) session.user = user;
  return isKnown;
}

/** Return whether a user is a member of a space that the key gives access to: such users may have nothing of their own. */
async function isMember(user) {
  const { items } = await session.api.get("spaces");
  return items.some((space) => space.members.some((member) => member.user === user));
}

function showNavigation({ user, view }) {
  const links = [
    ...(user === null ? [] : Object.entries(USER_VIEWS).map(([name, { title }]) => navigationLink(address({ user, view: name }), title, name === view))),
    ...Object.entries(TENANT_VIEWS).filter(([, { isForAdmins }]) => !isForAdmins || session.keyNames !== null)
      .map(([name, { title }]) => navigationLink(address({ view: name }), title, user === null && name === view)),
  ];
  byId("views").replaceChildren(...links);
  byId("views").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  byId("who").textContent = byId("who").title = user ?? "";
}

function navigationLink(href, title, isCurrent) {
  return element("a", { href, "aria-current": isCurrent && "page" }, title);
}
