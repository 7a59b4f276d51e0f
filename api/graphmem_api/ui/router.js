// Addresses of views: `#/u/<user>/<view>/<id>?<query>` and, without a user, `#/<view>/<id>?<query>`.

const PLACES_KEY = "graphmem.places";

/** Return `{user, view, id, query}` of an address; what it does not name is null. */
export function parseAddress(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const segments = path.split("/").map(decodeSegment);
  const user = segments[0] === "u" ? segments[1] || null : null;
  const [view, id] = user === null ? segments : segments.slice(2);
  return { user, view: view || null, id: id || null, query: new URLSearchParams(query) };
}

/** Return the address of a view. */
export function address({ user = null, view, id = null, query = {} }) {
  const segments = [...(user === null ? [] : ["u", user]), view, ...(id === null ? [] : [id])];
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${segments.map(encodeURIComponent).join("/")}${search}`;
}

function decodeSegment(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Shows the view of the address. How far a view was scrolled is read when it is left, so that no scroll is too late. */
export class Router {
  #places = takeStoredPlaces();
  #entry = null;
  #isComplete = false;
  /** The place to restore; null once it is reached or the user has scrolled. */
  #wanted = null;
  #reached = 0;

  /** `show(address, {isNavigation})` shows a view and resolves when it is complete. */
  constructor(show) {
    this.show = show;
    history.scrollRestoration = "manual";
    addEventListener("popstate", () => this.refresh(true));
    addEventListener("pagehide", () => {
      this.#rememberPlace();
      sessionStorage.setItem(PLACES_KEY, JSON.stringify([...this.#places]));
    });
    for (const kind of ["wheel", "touchmove"]) addEventListener(kind, () => { this.#wanted = null; }, { passive: true });
    // A place that a complete page cannot reach is given up for what the user does next, such as loading more rows.
    for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => { if (this.#isComplete) this.#wanted = null; }, true);
    addEventListener("scroll", () => { if (this.#isComplete && scrollY !== this.#reached) this.#wanted = null; }, { passive: true });
    new ResizeObserver(() => this.#restore()).observe(document.body);
  }

  /** Show another address, which the back button leaves. */
  navigate(hash) {
    if (location.hash !== hash) history.pushState(null, "", hash);
    return this.refresh(true);
  }

  /** Change the address in place, such as while a slider moves; the view is not shown again. */
  replace(hash) {
    history.replaceState(history.state, "", hash);
  }

  /** Show the view of the address, at the place where it was left. */
  async refresh(isNavigation = false) {
    this.#rememberPlace();
    if (!history.state?.entry) history.replaceState({ ...history.state, entry: `${Date.now()} ${Math.random()}` }, "");
    this.#entry = history.state.entry;
    this.#wanted = this.#places.get(this.#entry) ?? 0;
    this.#isComplete = false;
    if (!(await this.show(parseAddress(location.hash), { isNavigation }))) return;
    this.#isComplete = true;
    this.#restore();
  }

  /** Remember the place of the entry that is shown: the address may be that of the next one already. */
  #rememberPlace() {
    if (this.#entry !== null) this.#places.set(this.#entry, this.#wanted ?? scrollY);
  }

  /** Scroll to the wanted place; the page calls it again when it grows. */
  #restore() {
    if (!this.#isComplete || this.#wanted === null) return;
    scrollTo(0, this.#wanted);
    this.#reached = scrollY;
    if (scrollY > this.#wanted - 1) this.#wanted = null;
  }
}

/** Return the places, by history entry, that the page kept when it was left, and remove them from the storage. */
function takeStoredPlaces() {
  const stored = sessionStorage.getItem(PLACES_KEY);
  sessionStorage.removeItem(PLACES_KEY);
  return new Map(JSON.parse(stored ?? "[]"));
}
