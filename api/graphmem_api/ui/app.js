// The explorer: signing in, and which view is shown. The key stays in this tab's session storage.

import { ApiClient } from "./api.js";
import { byId, showError, announce } from "./dom.js";
import { Explorer } from "./explorer.js";
import { HistoryDialog } from "./history.js";
import { RunsView } from "./runs.js";

const SESSION_STORAGE_KEY = "graphmem.session";

const history = new HistoryDialog((validAt, knownAt) => explorer.showAsOf(validAt, knownAt));
const explorer = new Explorer((memoryId) => history.open(memoryId), (entityId) => navigate(`#/entities/${encodeURIComponent(entityId)}`));
const runs = new RunsView();
let session = null;

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [key, user] = [byId("key").value.trim(), byId("user").value.trim()];
  try {
    await signIn(key, user);
    sessionStorage.setItem(SESSION_STORAGE_KEY, JSON.stringify({ key, user }));
    byId("key").value = "";
  } catch (error) {
    showError(error);
  }
});
byId("sign-out").addEventListener("click", signOut);
addEventListener("hashchange", () => showView());
addEventListener("unhandledrejection", (event) => showError(event.reason));

const stored = JSON.parse(sessionStorage.getItem(SESSION_STORAGE_KEY) ?? "null");
if (stored) signIn(stored.key, stored.user).catch((error) => { signOut(); showError(error); });
else byId("key").focus();

/** Begin a session: the key must reach the user; whether it is an admin's shows in what it may list. */
async function signIn(key, user) {
  const api = new ApiClient(key, user);
  await api.getUserData("entities", { limit: 1 });
  const names = await keyNames(api);
  session = { api, isAdmin: names !== null };
  explorer.setSession(api);
  history.setSession(api, names ?? new Map());
  runs.setSession(api);
  showError(null);
  byId("sign-in").hidden = true;
  byId("who").hidden = false;
  byId("views").hidden = !session.isAdmin;
  byId("who-user").textContent = user;
  explorer.find();
  showView();
  if (!location.hash) byId("find").focus();
}

/** Return the names of the tenant's keys by id, or null for a key that may not see them. */
async function keyNames(api) {
  try {
    const { items } = await api.getAdminData("keys");
    return new Map(items.map((each) => [each.id, each.name]));
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** End the session; nothing of it stays on the page. */
function signOut() {
  sessionStorage.removeItem(SESSION_STORAGE_KEY);
  session = null;
  explorer.setSession(null);
  history.setSession(null, new Map());
  runs.setSession(null);
  for (const id of ["entities", "runs", "views", "who"]) byId(id).hidden = true;
  globalThis.history.replaceState(null, "", location.pathname);
  byId("sign-in").hidden = false;
  byId("key").focus();
  showError(null);
  announce("Signed out.");
}

function navigate(hash) {
  if (location.hash === hash) showView();
  else location.hash = hash;
}

/** Show the view that the address names: `#/entities/<id>`, `#/runs/<id>`. */
function showView() {
  if (!session) return;
  const [, named, id] = location.hash.split("/").map(decodeSegment);
  const view = named === "runs" && session.isAdmin ? "runs" : "entities";
  for (const each of ["entities", "runs"]) byId(each).hidden = each !== view;
  for (const link of byId("views").querySelectorAll("a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view === "runs" ? "Consolidation runs" : "Entities"} · graphmem explorer`;
  if (view === "entities" && id) explorer.showEntity(id);
  if (view === "runs") {
    runs.list();
    runs.showRun(id ?? null);
  }
}

function decodeSegment(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
