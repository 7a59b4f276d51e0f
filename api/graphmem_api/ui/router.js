// Addresses of views: `#/u/<user>/<view>/<id>?<query>` and, without a user, `#/<view>/<id>?<query>`.

const SCROLL_MS = 120;

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

export class Router {
  #scrollTimer = null;

  /** `show(address, {isNavigation})` shows a view and resolves when it is complete. */
  constructor(show) {
    this.show = show;
    history.scrollRestoration = "manual";
    addEventListener("popstate", () => this.refresh(true));
    addEventListener("scroll", () => {
      clearTimeout(this.#scrollTimer);
      this.#scrollTimer = setTimeout(() => history.replaceState({ ...history.state, scroll: scrollY }, ""), SCROLL_MS);
    }, { passive: true });
  }

  /** Show another address, which the back button leaves. */
  navigate(hash) {
    clearTimeout(this.#scrollTimer);
    if (location.hash !== hash) history.pushState(null, "", hash);
    return this.refresh(true);
  }

  /** Change the address in place, such as while a slider moves; the view is not shown again. */
  replace(hash) {
    history.replaceState(history.state, "", hash);
  }

  /** Show the view of the address, at the place where it was left. */
  async refresh(isNavigation = false) {
    clearTimeout(this.#scrollTimer);
    const scroll = history.state?.scroll ?? 0;
    const isComplete = await this.show(parseAddress(location.hash), { isNavigation });
    if (isComplete) scrollTo(0, scroll);
  }
}
