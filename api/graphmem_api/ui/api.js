// Speaking to the HTTP API with the reader's key.

const ROOT = new URL("../v1/", import.meta.url);

/** An answer other than success: `status` (0 when there was none), `message` and the list `errors` of `{loc, msg}`. */
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

  /** Read something of the user: `path` lies below the user's own. */
  getUserData(path, query = {}, signal = undefined) {
    return this.#call("GET", `users/${encodeURIComponent(this.user)}/${path}`, query, undefined, signal);
  }

  /** Read something for admins. */
  getAdminData(path, query = {}, signal = undefined) {
    return this.#call("GET", `admin/${path}`, query, undefined, signal);
  }

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
    const sent = body === undefined ? undefined : JSON.stringify(body);
    let answer;
    try {
      answer = await fetch(address, { method, headers, body: sent, signal, credentials: "omit", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The service does not answer: see whether it runs, then try again.");
    }
    const told = await answer.json().catch(() => null);
    if (!answer.ok) throw new ApiError(answer.status, told?.detail ?? `The service answered ${answer.status}.`, told?.errors);
    return told;
  }
}

/** Call `load(signal)` so that only the latest call counts: earlier ones are aborted and answer null. */
export function latestOnly(load) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const own = new AbortController();
    running = own;
    try {
      const found = await load(own.signal, ...given);
      return own.signal.aborted ? null : found;
    } catch (error) {
      if (own.signal.aborted) return null;
      throw error;
    }
  };
}
