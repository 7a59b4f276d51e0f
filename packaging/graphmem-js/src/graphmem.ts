/** The client: users, jobs, and every route of the API. */

import createClient, { type Client } from "openapi-fetch";
import { InvalidInput } from "./errors.js";
import { Listing } from "./listing.js";
import type { Job, UserFilters, UserSummary } from "./models.js";
import type { paths } from "./schema.js";
import { type CallOptions, Transport } from "./transport.js";
import { User } from "./user.js";

/** Address of a server that `graphmem serve` started with its default settings. */
export const DEFAULT_SERVER_URL = "http://127.0.0.1:8321";

const TIMEOUT_MILLISECONDS = 30_000;
const ATTEMPTS = 4;

/** Where the server is, and how it is called. */
export interface GraphmemOptions {
  /** The key; by default the environment variable `GRAPHMEM_API_KEY`. */
  apiKey?: string | undefined;
  /** The address; by default the environment variable `GRAPHMEM_URL`, else a server on this machine. */
  baseUrl?: string | undefined;
  /** Milliseconds for one attempt of a call; `null`: no limit. Calls that wait for work to finish have none. */
  timeout?: number | null | undefined;
  /** How often a call is sent when the server cannot be reached, is unavailable or limits the rate. */
  attempts?: number | undefined;
  /** The function that sends requests. */
  fetch?: typeof globalThis.fetch | undefined;
}

/**
 * A client of graphmem: `new Graphmem({ apiKey: "gm_…" }).user("ada").search("tea")`.
 *
 * Writes carry an idempotency key: sent again, they happen once. Methods throw the errors of this package.
 */
export class Graphmem {
  /** Every route of the API, typed: `graphmem.api.GET("/v1/admin/keys")`; calls throw instead of returning an error. */
  readonly api: Client<paths, "application/json">;

  readonly #transport: Transport;

  constructor(options: GraphmemOptions = {}) {
    const environment = globalThis.process?.env ?? {};
    const apiKey = options.apiKey ?? environment["GRAPHMEM_API_KEY"];
    if (!apiKey) throw new InvalidInput("There is no key: give `apiKey` or set GRAPHMEM_API_KEY.");
    this.#transport = new Transport({
      apiKey,
      timeout: options.timeout === undefined ? TIMEOUT_MILLISECONDS : options.timeout,
      attempts: options.attempts ?? ATTEMPTS,
      fetch: options.fetch ?? globalThis.fetch,
    });
    this.api = createClient<paths>({
      baseUrl: options.baseUrl ?? environment["GRAPHMEM_URL"] ?? DEFAULT_SERVER_URL,
      fetch: this.#transport.with({}),
      querySerializer: toQuery,
      pathSerializer: fillPath,
    });
  }

  /** Returns the memory of a user; nothing is sent. */
  user(userId: string): User {
    return new User(userId, this.api, this.#transport);
  }

  /** Lists the users that the key may read. */
  users(filters: UserFilters = {}, options: CallOptions = {}): Listing<UserSummary> {
    return new Listing(async (cursor) => {
      const query = { ...filters, ...(cursor && { cursor }) };
      const { data } = await this.api.GET("/v1/users", { params: { query }, fetch: this.#transport.with(options) });
      return data!;
    });
  }

  /** Reads the state of a background job. */
  async job(jobId: string, options: CallOptions = {}): Promise<Job> {
    const params = { path: { job_id: jobId } };
    return (await this.api.GET("/v1/jobs/{job_id}", { params, fetch: this.#transport.with(options) })).data!;
  }

  /** Queues a failed job again, from the step that failed or, with `fresh`, from its messages. */
  async retryJob(jobId: string, query: { fresh?: boolean } = {}, options: CallOptions = {}): Promise<Job> {
    const params = { path: { job_id: jobId }, query };
    return (await this.api.POST("/v1/jobs/{job_id}/retry", { params, fetch: this.#transport.with(options) })).data!;
  }
}

/** Returns a query string: lists as repeated parameters, the keys of an object after its name and a dot. */
function toQuery(query: Record<string, unknown>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((item) => pairs.append(name, String(item)));
    else if (value !== null && typeof value === "object") {
      Object.entries(value).forEach(([key, item]) => pairs.append(`${name}.${key}`, String(item)));
    } else if (value !== null && value !== undefined) pairs.append(name, String(value));
  }
  return pairs.toString();
}

/** Returns a path with its ids, each as one segment; throws for ids that no path can hold. */
function fillPath(path: string, ids: Record<string, unknown>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = String(ids[name] ?? "");
    if (/^\.{0,2}$/.test(id)) throw new InvalidInput(`An id must not be empty, "." or "..": change ${name}.`);
    return encodeURIComponent(id);
  });
}
