// Calls of the HTTP API with the user's key.

const ROOT = new URL("../v1/", import.meta.url);
const MAX_PAGE_SIZE = 200;

/** An unsuccessful response: its `status` (0 when there was none), `message` and the list `errors` of `{loc, msg}`. */
export class ApiError extends Error {
  constructor(status, message, errors = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

/** Return a path of the API below `/v1`, from segments. */
export const apiPath = (...segments) => segments.map(encodeURIComponent).join("/");

export class ApiClient {
  #key;
  #signal;

  /** `signal` aborts every call of this client. */
  constructor(key, signal = undefined) {
    this.#key = key;
    this.#signal = signal;
  }

  /** Return a client with the same key whose calls a signal aborts. */
  withSignal(signal) {
    return new ApiClient(this.#key, signal);
  }

  get(path, query = {}) {
    return this.#call("GET", path, query);
  }

  post(path, body = {}) {
    return this.#call("POST", path, {}, body);
  }

  put(path, body, query = {}) {
    return this.#call("PUT", path, query, body);
  }

  patch(path, body, headers = {}) {
    return this.#call("PATCH", path, {}, body, headers);
  }

  delete(path, query = {}) {
    return this.#call("DELETE", path, query);
  }

  /** Return up to `limit` items of a list, and whether there are more. */
  async list(path, query, limit) {
    const items = [];
    let cursor = null;
    do {
      const page = await this.get(path, { ...query, cursor, limit: Math.min(MAX_PAGE_SIZE, limit - items.length) });
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor && items.length < limit);
    return { items, hasMore: Boolean(cursor) };
  }

  async #call(method, path, query, body = undefined, extraHeaders = {}) {
    const address = new URL(path, ROOT);
    for (const [name, value] of Object.entries(query)) {
      for (const item of [value].flat()) {
        if (item !== null && item !== undefined && item !== "") address.searchParams.append(name, item);
      }
    }
    const headers = { Authorization: `Bearer ${this.#key}`, ...extraHeaders };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const content = body === undefined ? undefined : JSON.stringify(body);
    let response;
    try {
      response = await fetch(address, { method, headers, body: content, signal: this.#signal, credentials: "omit", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The server does not respond. Check that it is running, then try again.");
    }
    if (response.status === 204) return null;
    const data = await response.json().catch((error) => {
      if (error.name === "AbortError") throw error;
      return null;
    });
    if (!response.ok) {
      throw new ApiError(response.status, data?.detail ?? `The service answered ${response.status}.`, data?.errors);
    }
    return data;
  }
}

/** Return `load(signal, …)` as a function of which only the latest call counts: earlier ones are aborted and return null. */
export function latestOnly(load) {
  let running = null;
  return async (...parameters) => {
    running?.abort();
    const own = new AbortController();
    running = own;
    try {
      const result = await load(own.signal, ...parameters);
      return own.signal.aborted ? null : result;
    } catch (error) {
      if (own.signal.aborted) return null;
      throw error;
    }
  };
}
