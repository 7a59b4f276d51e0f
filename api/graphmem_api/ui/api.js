// Calls of the HTTP API with the user's key.

const ROOT = new URL("../v1/", import.meta.url);

/** An unsuccessful response: its `status` (0 when there was none), `message` and the list `errors` of `{loc, msg}`. */
export class ApiError extends Error {
  constructor(status, message, errors = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

export class ApiClient {
  #key;

  constructor(key, user) {
    this.#key = key;
    this.user = user;
  }

  /** Read from a path below the user's. */
  getUserData(path, query = {}, signal = undefined) {
    return this.#call("GET", `users/${encodeURIComponent(this.user)}/${path}`, query, undefined, signal);
  }

  /** Read from a path for admins. */
  getAdminData(path, query = {}, signal = undefined) {
    return this.#call("GET", `admin/${path}`, query, undefined, signal);
  }

  /** List users whose id contains a text. */
  listUsers(query, signal = undefined) {
    return this.#call("GET", "users", { query, limit: 50 }, undefined, signal);
  }

  /** Undo a consolidation run; with `force`, overwrite later writes. */
  rollBack(runId, force) {
    return this.#call("POST", `admin/consolidations/${encodeURIComponent(runId)}/rollback`, {}, { force });
  }

  async #call(method, path, query, body, signal) {
    const address = new URL(path, ROOT);
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, value);
    }
    const headers = { Authorization: `Bearer ${this.#key}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const content = body === undefined ? undefined : JSON.stringify(body);
    let response;
    try {
      response = await fetch(address, { method, headers, body: content, signal, credentials: "omit", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The service does not answer: check that it runs, then try again.");
    }
    const data = await response.json().catch(() => null);
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
