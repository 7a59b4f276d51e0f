// The explorer: signing in, and which place is shown. The key stays in this tab's session storage.

import { Api } from "./api.js";
import { byId, complain, say } from "./dom.js";
import { Explorer } from "./explore.js";
import { History } from "./history.js";
import { Runs } from "./runs.js";

const KEPT = "graphmem.session";

const history = new History((validAt, knownAt) => explorer.lookBack(validAt, knownAt));
const explorer = new Explorer((memoryId) => history.open(memoryId), (entityId) => lead(`#/entities/${encodeURIComponent(entityId)}`));
const runs = new Runs();
let session = null;

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [key, user] = [byId("key").value.trim(), byId("user").value.trim()];
  try {
    await begin(key, user);
    sessionStorage.setItem(KEPT, JSON.stringify({ key, user }));
    byId("key").value = "";
  } catch (error) {
    complain(error);
  }
});
byId("sign-out").addEventListener("click", end);
addEventListener("hashchange", () => show());
addEventListener("unhandledrejection", (event) => complain(event.reason));

const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
if (kept) begin(kept.key, kept.user).catch((error) => { end(); complain(error); });
else byId("key").focus();

/** Begin a session: the key must reach the user; whether it is an admin's shows in what it may list. */
async function begin(key, user) {
  const api = new Api(key, user);
  await api.ofUser("entities", { limit: 1 });
  const names = await keyNames(api);
  session = { api, isAdmin: names !== null };
  explorer.serve(api);
  history.serve(api, names ?? new Map());
  runs.serve(api);
  complain(null);
  byId("sign-in").hidden = true;
  byId("who").hidden = false;
  byId("places").hidden = !session.isAdmin;
  byId("who-user").textContent = user;
  explorer.find();
  show();
  if (!location.hash) byId("find").focus();
}

/** Return the names of the tenant's keys by id, or null for a key that may not see them. */
async function keyNames(api) {
  try {
    const { items } = await api.admin("keys");
    return new Map(items.map((each) => [each.id, each.name]));
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** End the session; nothing of it stays on the page. */
function end() {
  sessionStorage.removeItem(KEPT);
  session = null;
  explorer.serve(null);
  history.serve(null, new Map());
  runs.serve(null);
  for (const id of ["entities", "runs", "places", "who"]) byId(id).hidden = true;
  globalThis.history.replaceState(null, "", location.pathname);
  byId("sign-in").hidden = false;
  byId("key").focus();
  complain(null);
  say("Signed out.");
}

function lead(hash) {
  if (location.hash === hash) show();
  else location.hash = hash;
}

/** Show the place that the address names: `#/entities/<id>`, `#/runs/<id>`. */
function show() {
  if (!session) return;
  const [, named, id] = location.hash.split("/").map(decoded);
  const place = named === "runs" && session.isAdmin ? "runs" : "entities";
  for (const each of ["entities", "runs"]) byId(each).hidden = each !== place;
  for (const link of byId("places").querySelectorAll("a")) {
    if (link.dataset.place === place) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${place === "runs" ? "Consolidation runs" : "Entities"} · graphmem explorer`;
  if (place === "entities" && id) explorer.choose(id);
  if (place === "runs") {
    runs.list();
    runs.choose(id ?? null);
  }
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
