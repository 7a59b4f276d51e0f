/** The client: users, jobs, and every route of the API. */

import createClient, { type Client } from "openapi-fetch";
import { InvalidInput } from "./errors.js";
import { Listing } from "./listing.js";
import type {
  ErasureResult,
  Job,
  MemberKind,
  QuarantinedStatement,
  QuarantineFilters,
  SaveResult,
  Space,
  SpaceIn,
  SpaceRole,
  StatedKind,
  Trust,
  UserFilters,
  UserSummary,
} from "./models.js";
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

  // Spaces

  /** Creates a space or changes it; without `members` its own stay. */
  async putSpace(spaceId: string, space: SpaceIn, options: CallOptions = {}): Promise<Space> {
    const call = { params: { path: { space_id: spaceId } }, body: space, fetch: this.#transport.with(options) };
    return (await this.api.PUT("/v1/spaces/{space_id}", call)).data!;
  }

  /** Lists the spaces of which the key or a user of the key is a member; with an admin's key all. */
  async spaces(options: CallOptions = {}): Promise<Space[]> {
    return (await this.api.GET("/v1/spaces", { fetch: this.#transport.with(options) })).data!.items;
  }

  /** Reads a space with its members. */
  async space(spaceId: string, options: CallOptions = {}): Promise<Space> {
    const call = { params: { path: { space_id: spaceId } }, fetch: this.#transport.with(options) };
    return (await this.api.GET("/v1/spaces/{space_id}", call)).data!;
  }

  /** Gives a user or a key a role in a space; without `kind` an id that a key has is a key's. */
  async setSpaceMember(
    spaceId: string,
    memberId: string,
    role: SpaceRole,
    options: { kind?: MemberKind } & CallOptions = {},
  ): Promise<Space> {
    const call = { ...this.#memberCall(spaceId, memberId, options), body: { role } };
    return (await this.api.PUT("/v1/spaces/{space_id}/members/{member_id}", call)).data!;
  }

  /** Removes a user or a key from a space, with effect from the next request on. */
  async removeSpaceMember(
    spaceId: string,
    memberId: string,
    options: { kind?: MemberKind } & CallOptions = {},
  ): Promise<void> {
    await this.api.DELETE("/v1/spaces/{space_id}/members/{member_id}", this.#memberCall(spaceId, memberId, options));
  }

  /** Erases a space with all its data, and counts what is left. */
  async deleteSpace(spaceId: string, options: CallOptions = {}): Promise<ErasureResult> {
    const params = { path: { space_id: spaceId } };
    const call = { params, fetch: this.#transport.with({ timeout: null, ...options }) };
    return (await this.api.DELETE("/v1/spaces/{space_id}", call)).data!;
  }

  // Whose word counts, and what is kept from the memories

  /** Reads which sources the tenant trusts more than others, the most trusted first (admin). */
  async trust(options: CallOptions = {}): Promise<Trust> {
    return (await this.api.GET("/v1/admin/trust", { fetch: this.#transport.with(options) })).data!;
  }

  /** Sets which sources the tenant trusts more than others; an empty order sets the default one again (admin). */
  async setTrust(
    order: readonly (StatedKind | readonly StatedKind[])[],
    options: CallOptions = {},
  ): Promise<Trust> {
    const groups = order.map((group) => (typeof group === "string" ? [group] : [...group]));
    const call = { body: { order: groups }, fetch: this.#transport.with(options) };
    return (await this.api.PUT("/v1/admin/trust", call)).data!;
  }

  /** Lists the statements that extraction has kept from the memories of a user, a space or all (admin). */
  quarantine(filters: QuarantineFilters = {}, options: CallOptions = {}): Listing<QuarantinedStatement> {
    return new Listing(async (cursor) => {
      const params = { query: { ...filters, ...(cursor && { cursor }) } };
      return (await this.api.GET("/v1/admin/quarantine", { params, fetch: this.#transport.with(options) })).data!;
    });
  }

  /** Saves a statement in quarantine as the memory that it would have been (admin). */
  async releaseQuarantined(statementId: string, options: CallOptions = {}): Promise<SaveResult> {
    const call = { params: { path: { statement_id: statementId } }, fetch: this.#transport.with(options) };
    return (await this.api.POST("/v1/admin/quarantine/{statement_id}/release", call)).data!;
  }

  /** Erases a statement from the quarantine; the message that it is from stays (admin). */
  async dropQuarantined(statementId: string, options: CallOptions = {}): Promise<void> {
    const call = { params: { path: { statement_id: statementId } }, fetch: this.#transport.with(options) };
    await this.api.DELETE("/v1/admin/quarantine/{statement_id}", call);
  }

  #memberCall(spaceId: string, memberId: string, { kind, ...options }: { kind?: MemberKind } & CallOptions) {
    const params = { path: { space_id: spaceId, member_id: memberId }, query: kind === undefined ? {} : { kind } };
    return { params, fetch: this.#transport.with(options) };
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
