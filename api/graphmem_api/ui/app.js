// The explorer page: signing in, and switching between views. The key stays in the session storage of this tab.

import { ApiClient, ApiError, latestOnly } from "./api.js";
import { announce, byId, element, reportErrors, showError } from "./dom.js";
import { Explorer } from "./explorer.js";
import { HistoryDialog } from "./history.js";
import { RunsView } from "./runs.js";

const SESSION_STORAGE_KEY = "graphmem.session";
const VIEWS = ["entities", "runs"];

const history = new HistoryDialog((validAt, knownAt) => explorer.showAsOf(validAt, knownAt));
const explorer = new Explorer((memoryId) => history.open(memoryId), (entityId) => navigate(`#/entities/${encodeURIComponent(entityId)}`));
const runs = new RunsView();
let session = null;

byId("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [key, user] = [byId("key").value.trim(), byId("user").value.trim()];
  reportErrors(async () => {
    await signIn(key, user);
    sessionStorage.setItem(SESSION_STORAGE_KEY, JSON.stringify({ key, user }));
    byId("key").value = "";
  });
});
byId("user").addEventListener("input", () => suggestUsers().catch(() => null));
byId("sign-out").addEventListener("click", signOut);
addEventListener("hashchange", () => showView());
addEventListener("unhandledrejection", (event) => showError(event.reason));

const stored = JSON.parse(sessionStorage.getItem(SESSION_STORAGE_KEY) ?? "null");
if (stored) signIn(stored.key, stored.user).catch((error) => { signOut(); showError(error); });
else byId("key").focus();

/** Start a session with a key that has access to the user; a key that may list keys is an admin's. */
async function signIn(key, user) {
  const api = new ApiClient(key, user);
  await api.getUserData("entities", { limit: 1 });
  const { items } = await api.listUsers(user);
  if (!items.some((found) => found.user_id === user)) throw new ApiError(404, unknownUserText(user, items));
  const keyNames = await loadKeyNames(api);
  session = { api, isAdmin: keyNames !== null };
  explorer.setSession(api);
  history.setSession(api, keyNames ?? new Map());
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

function unknownUserText(user, similar) {
  const others = similar.slice(0, 3).map((found) => found.user_id).join(", ");
  return `Nothing is stored for the user “${user}”${others ? `: did you mean ${others}?` : ". Check the id."}`;
}

const loadSuggestions = latestOnly((signal, key, text) => new ApiClient(key, text).listUsers(text, signal));

/** Offer the users whose id contains what is typed, once there is a key. */
async function suggestUsers() {
  const key = byId("key").value.trim();
  const page = key && await loadSuggestions(key, byId("user").value.trim());
  if (page) byId("users").replaceChildren(...page.items.map((found) => element("option", { value: found.user_id })));
}

/** Return the names of the tenant's keys by id, or null for a key that may not list them. */
async function loadKeyNames(api) {
  try {
    const { items } = await api.getAdminData("keys");
    return new Map(items.map((key) => [key.id, key.name]));
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** End the session and remove its data from the page. */
function signOut() {
  sessionStorage.removeItem(SESSION_STORAGE_KEY);
  session = null;
  explorer.setSession(null);
  history.setSession(null, new Map());
  runs.setSession(null);
  for (const id of [...VIEWS, "views", "who"]) byId(id).hidden = true;
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

/** Show the view in the address: `#/entities/<id>` or `#/runs/<id>`. */
function showView() {
  if (!session) return;
  const [, name, id] = location.hash.split("/").map(decodeSegment);
  const view = name === "runs" && session.isAdmin ? "runs" : "entities";
  for (const candidate of VIEWS) byId(candidate).hidden = candidate !== view;
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

function decodeSegment(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
