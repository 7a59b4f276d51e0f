/** The errors that calls throw: a class for each type of problem that the API answers with. */

import type { Problem, ProblemType } from "./models.js";

type ProblemOf<T extends ProblemType> = Extract<Problem, { type: T }>;

/** What is known about a failed call besides its problem document. */
export interface ErrorOptions {
  /** The HTTP status; absent when there was no response. */
  status?: number | undefined;
  /** Seconds after which the same call may succeed. */
  retryAfter?: number | undefined;
  /** The id under which the server's log has the request. */
  requestId?: string | undefined;
  cause?: unknown;
}

/** The base of all errors; `problem` is the document that the server sent, told apart by its `type`. */
export class GraphmemError<P extends Problem = Problem> extends Error {
  readonly problem: P | undefined;
  readonly status: number | undefined;
  readonly retryAfter: number | undefined;
  readonly requestId: string | undefined;

  constructor(detail: string, problem?: P, options: ErrorOptions = {}) {
    super(detail, { cause: options.cause });
    this.name = new.target.name;
    this.problem = problem;
    this.status = options.status;
    this.retryAfter = options.retryAfter;
    this.requestId = options.requestId;
  }
}

/** The caller's data cannot be used; `problem.errors` lists what is wrong, field by field. */
export class InvalidInput extends GraphmemError<ProblemOf<"urn:graphmem:problem:invalid-input">> {}

/** The key is missing, unknown or revoked. */
export class Unauthenticated extends GraphmemError<ProblemOf<"urn:graphmem:problem:unauthenticated">> {}

/** The role or the users of the key do not allow this. */
export class Forbidden extends GraphmemError<ProblemOf<"urn:graphmem:problem:forbidden">> {}

/** The user has nothing with this id. */
export class NotFound extends GraphmemError<ProblemOf<"urn:graphmem:problem:not-found">> {}

/** The request did not arrive in time. */
export class RequestTimeout extends GraphmemError<ProblemOf<"urn:graphmem:problem:request-timeout">> {}

type ConflictProblem = Extract<Problem, { status: 409 }>;

/** The change conflicts with the stored state. */
export class Conflict<P extends ConflictProblem = ConflictProblem> extends GraphmemError<P> {}

/** The memory has a later version than the one that the change was made for. */
export class VersionConflict extends Conflict<ProblemOf<"urn:graphmem:problem:version-conflict">> {}

/** The memory is immutable; it can only be erased or forgotten. */
export class ImmutableMemory extends Conflict<ProblemOf<"urn:graphmem:problem:immutable-memory">> {}

/** The memory was deleted before, so that it cannot be changed. */
export class MemoryDeleted extends Conflict<ProblemOf<"urn:graphmem:problem:memory-deleted">> {}

/** The user is being erased; until that has ended, nothing is stored. */
export class UserBeingForgotten extends Conflict<ProblemOf<"urn:graphmem:problem:user-being-forgotten">> {}

/** The idempotency key was used with another body. */
export class IdempotencyConflict extends Conflict<ProblemOf<"urn:graphmem:problem:idempotency-conflict">> {}

/** The retention period has passed. */
export class Gone extends GraphmemError<ProblemOf<"urn:graphmem:problem:gone">> {}

/** The request is over a configured limit. */
export class TooLarge extends GraphmemError<ProblemOf<"urn:graphmem:problem:too-large">> {}

/** Too many requests; `retryAfter` is the number of seconds to wait. */
export class RateLimited extends GraphmemError<ProblemOf<"urn:graphmem:problem:too-many-requests">> {}

type UnavailableProblem = Extract<Problem, { status: 503 }>;

/** The server or what it depends on is unavailable; the same call may succeed later. */
export class Unavailable<P extends UnavailableProblem = UnavailableProblem> extends GraphmemError<P> {}

/** The installation cannot run as it is configured; the message says what to change. */
export class ConfigurationError extends Unavailable<ProblemOf<"urn:graphmem:problem:configuration-error">> {}

/** The installation lacks what the call needs, such as a language model; the message says what to configure. */
export class NotConfigured extends GraphmemError<ProblemOf<"urn:graphmem:problem:not-configured">> {}

type ErrorClass = new (detail: string, problem?: never, options?: ErrorOptions) => GraphmemError;

const CLASSES: Record<ProblemType, ErrorClass> = {
  "urn:graphmem:problem:invalid-input": InvalidInput,
  "urn:graphmem:problem:unauthenticated": Unauthenticated,
  "urn:graphmem:problem:forbidden": Forbidden,
  "urn:graphmem:problem:not-found": NotFound,
  "urn:graphmem:problem:request-timeout": RequestTimeout,
  "urn:graphmem:problem:conflict": Conflict,
  "urn:graphmem:problem:version-conflict": VersionConflict,
  "urn:graphmem:problem:immutable-memory": ImmutableMemory,
  "urn:graphmem:problem:memory-deleted": MemoryDeleted,
  "urn:graphmem:problem:user-being-forgotten": UserBeingForgotten,
  "urn:graphmem:problem:idempotency-conflict": IdempotencyConflict,
  "urn:graphmem:problem:gone": Gone,
  "urn:graphmem:problem:too-large": TooLarge,
  "urn:graphmem:problem:too-many-requests": RateLimited,
  "urn:graphmem:problem:unavailable": Unavailable,
  "urn:graphmem:problem:configuration-error": ConfigurationError,
  "urn:graphmem:problem:not-configured": NotConfigured,
  "urn:graphmem:problem:internal-error": GraphmemError,
};

/** Statuses of a server, or of a proxy before it, that may succeed later. */
const UNAVAILABLE_STATUSES = [502, 503, 504];

/** Returns the error that a response stands for. */
export async function errorFromResponse(response: Response): Promise<GraphmemError> {
  const problem = await problemOf(response);
  const { status } = response;
  const unknown = status === 429 ? RateLimited : UNAVAILABLE_STATUSES.includes(status) ? Unavailable : GraphmemError;
  const kind: ErrorClass = (problem && CLASSES[problem.type]) ?? unknown;
  return new kind(problem?.detail ?? `The server answered ${status} ${response.statusText}.`, problem as never, {
    status,
    retryAfter: secondsOf(response.headers.get("retry-after")),
    requestId: response.headers.get("x-request-id") ?? undefined,
  });
}

async function problemOf(response: Response): Promise<Problem | undefined> {
  if (!response.headers.get("content-type")?.startsWith("application/problem+json")) return undefined;
  try {
    return (await response.json()) as Problem;
  } catch {
    return undefined;
  }
}

function secondsOf(header: string | null): number | undefined {
  return header !== null && /^\d+$/.test(header) ? Number(header) : undefined;
}
