/** Requests with a key, a time limit, an idempotency key, and another attempt where that may help. */

import { errorFromResponse, GraphmemError, RateLimited, Unavailable } from "./errors.js";

/** Seconds; a call is not retried when the server asks for a longer pause. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** Longest pause after the first attempt; it doubles with each further attempt. */
const BACKOFF_SECONDS = 0.25;

/** Longest pause that the client chooses itself. */
const MAX_BACKOFF_SECONDS = 10;

const IDEMPOTENCY_KEY = "Idempotency-Key";

/** What every method takes as its last argument. */
export interface CallOptions {
  /** Ends the call, and its pauses between attempts. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for one attempt; `null`: no limit. */
  timeout?: number | null | undefined;
  /** The key under which a repeated write happens once; by default a new one for each call. */
  idempotencyKey?: string | undefined;
}

/** How requests are sent. */
export interface TransportOptions {
  apiKey: string;
  timeout: number | null;
  attempts: number;
  fetch: typeof globalThis.fetch;
}

/** Sends requests, again where that may help, and throws the error that a response stands for. */
export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** Returns a `fetch` for one call; all its attempts share one idempotency key. */
  with(call: CallOptions): (request: Request) => Promise<Response> {
    return (request) => this.#send(request, call);
  }

  async #send(request: Request, call: CallOptions): Promise<Response> {
    request.headers.set("Authorization", `Bearer ${this.#options.apiKey}`);
    if (request.method !== "GET" && !request.headers.has(IDEMPOTENCY_KEY)) {
      request.headers.set(IDEMPOTENCY_KEY, call.idempotencyKey ?? crypto.randomUUID());
    }
    const signal = call.signal ? AbortSignal.any([call.signal, request.signal]) : request.signal;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#sendOnce(request.clone(), call, signal);
      } catch (error) {
        const pause = attempt < this.#options.attempts ? pauseAfter(attempt, error) : undefined;
        if (pause === undefined) throw error;
        await wait(pause, signal);
      }
    }
  }

  async #sendOnce(request: Request, call: CallOptions, signal: AbortSignal): Promise<Response> {
    const timeout = call.timeout === undefined ? this.#options.timeout : call.timeout;
    const limit = timeout === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
    let response: Response;
    try {
      response = await readWhole(await this.#options.fetch(request, { signal: limit }));
    } catch (error) {
      signal.throwIfAborted();
      throw unreachable(request, limit.aborted ? limit.reason : error);
    }
    if (!response.ok) throw await errorFromResponse(response);
    return response;
  }
}

/** Returns a response whose body has arrived, so that the time limit and further attempts cover the body too. */
async function readWhole(response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  return response.body ? new Response(await response.arrayBuffer(), { status, statusText, headers }) : response;
}

/** Returns the seconds to wait after a failed attempt, or undefined when the call has failed for good. */
function pauseAfter(attempt: number, error: unknown): number | undefined {
  if (!(error instanceof RateLimited || error instanceof Unavailable)) return undefined;
  if (error.retryAfter !== undefined) {
    return error.retryAfter <= MAX_RETRY_AFTER_SECONDS ? error.retryAfter : undefined;
  }
  return Math.random() * Math.min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** (attempt - 1));
}

function wait(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

function unreachable(request: Request, error: unknown): GraphmemError {
  const { origin } = new URL(request.url);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : String(cause);
  return new Unavailable(`graphmem at ${origin} cannot be reached (${reason}).`, undefined, { cause: error });
}
