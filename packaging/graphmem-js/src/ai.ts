/**
 * Memory for the Vercel AI SDK: `withMemory` wraps a model, `memoryTools` are tools for it.
 *
 * ```ts
 * const model = withMemory(openai("gpt-5"), graphmem.user("ada"), { sessionId: "monday" });
 * const { text } = await generateText({ model, prompt: "Where do I live?" });
 * ```
 */

import { jsonSchema, type LanguageModelMiddleware, tool, wrapLanguageModel } from "ai";
import { GraphmemError } from "./errors.js";
import type { MessageIn } from "./models.js";
import type { User } from "./user.js";

type Model = Parameters<typeof wrapLanguageModel>[0]["model"];
type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type StreamResult = Awaited<ReturnType<WrapStream>>;
type StreamPart = StreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;
type Params = Parameters<WrapStream>[0]["params"];
type FinishReason = Extract<StreamPart, { type: "finish" }>["finishReason"];
type ModelMessage = Params["prompt"][number];

const OPENING = "<graphmem_context>";
const CLOSING = "</graphmem_context>";
const TOKEN_BUDGET = 1000;
const TOOL_RESULTS = 10;

/** How a model is given a memory. */
export interface MemoryOptions {
  /** The session in which turns are stored; absent: graphmem chooses one. */
  sessionId?: string | undefined;
  /** Tokens of the context in the prompt, with the question; 1000 by default. */
  tokenBudget?: number | undefined;
  /** Whether turns are stored, so that memories are extracted from them; true by default. */
  store?: boolean | undefined;
  /** Called when the memory fails, in which case the model answers without it; by default a warning is logged. */
  onError?: ((error: unknown) => void) | undefined;
}

/** Returns a model that is told what graphmem knows about the question, and whose turns are stored. */
export function withMemory(model: Model, user: User, options: MemoryOptions = {}) {
  return wrapLanguageModel({ model, middleware: memoryMiddleware(user, options) });
}

/**
 * Returns a middleware that puts a context before the model and stores the turns after.
 *
 * The calls of one question, which follow each other where tools are called, share its context. Turns are stored when
 * the reply is complete: without contexts, tool calls and thoughts, so that graphmem does not learn from its own words.
 */
export function memoryMiddleware(user: User, options: MemoryOptions = {}): LanguageModelMiddleware {
  const memory = new ConversationMemory(user, options);
  return {
    specificationVersion: "v3",
    transformParams: async ({ params }) => memory.addContext(params),
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      if (isComplete(result.finishReason)) await memory.store(params, textOf(result.content));
      return result;
    },
    wrapStream: async ({ doStream, params }) => {
      const { stream, ...rest } = await doStream();
      const store = (reply: string) => memory.store(params, reply);
      return { ...rest, stream: stream.pipeThrough(onCompletion(store)) };
    },
  };
}

/** Returns the tools `search_memory` and `save_memory`, as in `generateText({ tools: memoryTools(user) })`. */
export function memoryTools(user: User) {
  return {
    search_memory: tool({
      description: "Search what is known about the user by meaning.",
      inputSchema: textSchema("query", "What to look for, as a question or as keywords."),
      execute: async ({ query }, { abortSignal }): Promise<string> => {
        const { results } = await user.search(query, { limit: TOOL_RESULTS, signal: abortSignal });
        return results.map((hit) => hit.memory.content).join("\n") || "Nothing is known about this.";
      },
    }),
    save_memory: tool({
      description: "Remember a statement about the user for later conversations.",
      inputSchema: textSchema(
        "statement",
        'One sentence in the third person, with names instead of pronouns and dates instead of "tomorrow".',
      ),
      execute: async ({ statement }, { abortSignal }): Promise<string> => {
        try {
          const [result] = await user.add(statement, { signal: abortSignal });
          return result?.memory ? `Saved: ${result.memory.content}` : `Not saved: ${result?.reason}`;
        } catch (error) {
          if (error instanceof GraphmemError) return `Not saved: ${error.message}`;
          throw error;
        }
      },
    }),
  };
}

/** Reads and writes the memory of a user for the calls of a model. */
class ConversationMemory {
  readonly #user: User;
  readonly #options: MemoryOptions;
  #latest: { question: string; context: string } | undefined;

  constructor(user: User, options: MemoryOptions) {
    this.#user = user;
    this.#options = options;
  }

  /** Returns the parameters of a call with the context of the latest question, in place of an earlier one. */
  async addContext(params: Params): Promise<Params> {
    const prompt = params.prompt.filter((message) => !isContext(message));
    const question = questionOf(prompt);
    const continued = prompt.at(-1)?.role !== "user" && this.#latest?.question === question;
    const context = continued
      ? this.#latest?.context
      : question && (await this.#guard(() => this.#buildContext(question, params.abortSignal)));
    if (!context) return { ...params, prompt };
    const firstTurn = prompt.findIndex((message) => message.role !== "system");
    return { ...params, prompt: prompt.toSpliced(firstTurn, 0, { role: "system", content: context }) };
  }

  /** Stores the latest question and the whole reply to it. */
  async store({ prompt }: Params, ending: string): Promise<void> {
    const { store = true, sessionId } = this.#options;
    const question = questionOf(prompt);
    if (!store || !question) return;
    const asked = prompt.findLastIndex((message) => message.role === "user");
    const said = prompt.slice(asked).map((message) => (message.role === "assistant" ? textOf(message.content) : ""));
    const reply = [...said, ending].filter((text) => text.trim()).join("\n");
    const turns: MessageIn[] = [{ role: "user", content: question }];
    if (reply) turns.push({ role: "assistant", content: reply });
    await this.#guard(() => this.#user.messages(turns, sessionId === undefined ? {} : { session_id: sessionId }));
  }

  async #buildContext(question: string, signal: AbortSignal | undefined): Promise<string> {
    const { sessionId: session_id = null, tokenBudget: token_budget = TOKEN_BUDGET } = this.#options;
    // A question counts towards the budget; the end of a long one is enough to find what it is about.
    const asked = [...question].slice(-token_budget).join("");
    const { preamble } = await this.#user.context(asked, { session_id, token_budget, signal });
    const context = `${OPENING}\n${preamble}\n${CLOSING}`;
    this.#latest = { question, context };
    return context;
  }

  async #guard<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof GraphmemError)) throw error;
      const { onError = (failure: unknown) => console.warn("graphmem: answering without memory:", failure) } =
        this.#options;
      onError(error);
      return undefined;
    }
  }
}

function textSchema<Name extends string>(name: Name, description: string) {
  return jsonSchema<Record<Name, string>>({
    type: "object",
    properties: { [name]: { type: "string", description } },
    required: [name],
    additionalProperties: false,
  });
}

/** Returns whether a reply is what the model has to say, neither a call of tools nor cut off by a failure. */
function isComplete(reason: FinishReason): boolean {
  return !["tool-calls", "error", "content-filter"].includes(reason.unified);
}

function isContext(message: ModelMessage): boolean {
  return message.role === "system" && message.content.startsWith(OPENING) && message.content.endsWith(CLOSING);
}

/** Returns the text of the latest message of the user; empty where there is none. */
function questionOf(prompt: Params["prompt"]): string {
  const asked = prompt.findLast((message) => message.role === "user");
  return asked ? textOf(asked.content) : "";
}

function textOf(parts: ReadonlyArray<{ type: string }>): string {
  return parts.flatMap((part) => (part.type === "text" && "text" in part ? [String(part.text)] : [])).join("\n");
}

/** Returns a stream that passes everything on and, before its end, hands over the text of a complete reply. */
function onCompletion(handle: (reply: string) => Promise<void>): TransformStream<StreamPart, StreamPart> {
  let reply = "";
  let complete = false;
  return new TransformStream({
    transform(part, controller) {
      if (part.type === "text-delta") reply += part.delta;
      if (part.type === "finish") complete = isComplete(part.finishReason);
      controller.enqueue(part);
    },
    flush: () => (complete ? handle(reply) : undefined),
  });
}
