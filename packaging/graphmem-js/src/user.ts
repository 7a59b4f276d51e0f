/** The memory of one user: the routes under `/v1/users/{user_id}`. */

import type { Client } from "openapi-fetch";
import { Listing, type Page } from "./listing.js";
import type {
  AskRequest,
  AskResponse,
  BehaviorPattern,
  ChangeFilters,
  ContextItem,
  ContextItemIn,
  ContextRequest,
  ContextResponse,
  EnhancedReply,
  EnhanceIn,
  Entity,
  EntityFilters,
  EntityGraph,
  ErasureResult,
  FeedbackResult,
  GraphOptions,
  ImportResult,
  Job,
  LearnedPreference,
  LookupOptions,
  LookupResponse,
  Memory,
  MemoryChange,
  MemoryFilters,
  MemoryIn,
  MemoryPatch,
  MemoryVersion,
  Message,
  MessageFilters,
  MessageIn,
  MessageSearchQuery,
  MessageSearchResponse,
  MessagesAccepted,
  MessagesIn,
  PlaceOptions,
  ProfiledEntity,
  ProfileOptions,
  SaveResult,
  SearchQuery,
  SearchResponse,
  Session,
  SessionFilters,
  SessionIn,
  UserContradiction,
  UserProfile,
} from "./models.js";
import type { paths } from "./schema.js";
import type { CallOptions, Transport } from "./transport.js";

const USER = "/v1/users/{user_id}";

/** A statement to save, as a text or with its fields. */
export type Statement = string | MemoryIn;

/** The options of `messages`: the session, and whether memories are extracted. */
export type MessagesOptions = Omit<MessagesIn, "messages"> & CallOptions;

type UserCall<Ids = object> = {
  params: { path: { user_id: string } & Ids };
  fetch: (request: Request) => Promise<Response>;
};

/** The memory of one user; the names of fields are those of the API. */
export class User {
  readonly id: string;
  readonly #api: Client<paths, "application/json">;
  readonly #transport: Transport;

  constructor(id: string, api: Client<paths, "application/json">, transport: Transport) {
    this.id = id;
    this.#api = api;
    this.#transport = transport;
  }

  // Memories

  /** Saves one statement or several without a language model: all of them or none. */
  async add(statements: Statement | readonly Statement[], options: CallOptions = {}): Promise<SaveResult[]> {
    const given = Array.isArray(statements) ? (statements as readonly Statement[]) : [statements as Statement];
    const memories = given.map((statement) => (typeof statement === "string" ? { content: statement } : statement));
    const { data } = await this.#api.POST(`${USER}/memories`, { ...this.#call(options), body: { memories } });
    return data!.results;
  }

  /** Lists current memories by attributes, without ranking. */
  memories(filters: MemoryFilters = {}, options: CallOptions = {}): Listing<Memory> {
    return this.#list(filters, async (query) => {
      const { data } = await this.#api.GET(`${USER}/memories`, this.#read(options, query));
      return data!;
    });
  }

  /** Reads a memory, deleted or not. */
  async memory(memoryId: string, options: CallOptions = {}): Promise<Memory> {
    const call = this.#call(options, { memory_id: memoryId });
    return (await this.#api.GET(`${USER}/memories/{memory_id}`, call)).data!;
  }

  /** Corrects a memory in a new version; throws `VersionConflict` when `ifVersion` is not the latest. */
  async update(
    memoryId: string,
    changes: MemoryPatch,
    options: CallOptions & { ifVersion?: number } = {},
  ): Promise<Memory> {
    const { params, fetch } = this.#call(options, { memory_id: memoryId });
    const header = options.ifVersion === undefined ? {} : { "if-match": `"${options.ifVersion}"` };
    const call = { params: { ...params, header }, fetch, body: changes };
    return (await this.#api.PATCH(`${USER}/memories/{memory_id}`, call)).data!;
  }

  /** Ends a memory; it stays in history. */
  async delete(memoryId: string, options: CallOptions = {}): Promise<Memory> {
    const call = this.#call(options, { memory_id: memoryId });
    return (await this.#api.DELETE(`${USER}/memories/{memory_id}`, call)).data as Memory;
  }

  /** Returns every version of a memory, oldest first, with why it ended and what replaced it. */
  async history(memoryId: string, options: CallOptions = {}): Promise<MemoryVersion[]> {
    const call = this.#call(options, { memory_id: memoryId });
    return (await this.#api.GET(`${USER}/memories/{memory_id}/history`, call)).data!.items;
  }

  /** Says whether a contested memory holds: it takes the place of what it contests, or is retired. */
  async resolve(memoryId: string, holds: boolean, options: CallOptions = {}): Promise<Memory> {
    const call = { ...this.#call(options, { memory_id: memoryId }), body: { holds } };
    return (await this.#api.POST(`${USER}/memories/{memory_id}/resolve`, call)).data!;
  }

  /** Undoes one supersession or resolution: reopens the memory and closes the one that replaced it. */
  async revert(memoryId: string, options: CallOptions = {}): Promise<Memory> {
    const call = this.#call(options, { memory_id: memoryId });
    return (await this.#api.POST(`${USER}/memories/{memory_id}/revert`, call)).data!;
  }

  /** Lists what graphmem learned, corrected, merged, deleted and restored between two times, oldest first. */
  changes(filters: ChangeFilters = {}, options: CallOptions = {}): Listing<MemoryChange> {
    return this.#list(filters, async (query) => {
      const { data } = await this.#api.GET(`${USER}/changes`, this.#read(options, query));
      return data!;
    });
  }

  // Reading

  /** Searches memories by meaning, keywords and graph. */
  async search(query: string, options: Omit<SearchQuery, "query"> & CallOptions = {}): Promise<SearchResponse> {
    const [call, body] = split(options);
    return (await this.#api.POST(`${USER}/search`, { ...this.#call(call), body: { ...body, query } })).data!;
  }

  /** Searches messages by meaning and keywords. */
  async searchMessages(
    query: string,
    options: Omit<MessageSearchQuery, "query"> & CallOptions = {},
  ): Promise<MessageSearchResponse> {
    const [call, body] = split(options);
    return (await this.#api.POST(`${USER}/messages/search`, { ...this.#call(call), body: { ...body, query } })).data!;
  }

  /** Finds the entities that a text names, and what is known about them, without a model or vectors. */
  async lookup(q: string, options: LookupOptions & CallOptions = {}): Promise<LookupResponse> {
    const [call, filters] = split(options);
    return (await this.#api.GET(`${USER}/entities/lookup`, this.#read(call, { ...filters, q }))).data!;
  }

  /** Lists entities. */
  entities(filters: EntityFilters = {}, options: CallOptions = {}): Listing<Entity> {
    return this.#list(filters, async (query) => {
      const { data } = await this.#api.GET(`${USER}/entities`, this.#read(options, query));
      return data!;
    });
  }

  /** Reads an entity with its aliases, its attributes and its profile: what is known of it in a few sentences. */
  async entity(entityId: string, options: CallOptions = {}): Promise<ProfiledEntity> {
    const call = this.#call(options, { entity_id: entityId });
    return (await this.#api.GET(`${USER}/entities/{entity_id}`, call)).data!;
  }

  /** Returns the entities and memories around an entity. */
  async entityGraph(entityId: string, graph: GraphOptions = {}, options: CallOptions = {}): Promise<EntityGraph> {
    const call = this.#read(options, graph, { entity_id: entityId });
    return (await this.#api.GET(`${USER}/entities/{entity_id}/graph`, call)).data!;
  }

  /** Answers a question from memory with citations, by a model of the server; 501 where it has none. */
  async ask(question: string, options: Omit<AskRequest, "question"> & CallOptions = {}): Promise<AskResponse> {
    const [call, rest] = split(options);
    return (await this.#api.POST(`${USER}/ask`, { ...this.#call(call), body: { ...rest, question } })).data!;
  }

  /** Builds what to put before the model, within a token budget: what is known, and what answers the question. */
  async context(
    question?: string,
    options: Omit<ContextRequest, "question"> & CallOptions = {},
  ): Promise<ContextResponse> {
    const [call, rest] = split(options);
    const body = question === undefined ? rest : { ...rest, question };
    return (await this.#api.POST(`${USER}/context`, { ...this.#call(call), body })).data!;
  }

  /** Adds to a reply what is known and fits. */
  async enhance(sessionId: string, reply: EnhanceIn, options: CallOptions = {}): Promise<EnhancedReply> {
    const call = { ...this.#call(options, { session_id: sessionId }), body: reply };
    return (await this.#api.POST(`${USER}/sessions/{session_id}/enhance`, call)).data!;
  }

  /** Reads what is known about the user as a whole. */
  async profile(
    domain?: string,
    options: Omit<ProfileOptions, "domain"> & CallOptions = {},
  ): Promise<UserProfile> {
    const [own, rest] = split(options);
    const call = this.#read(own, domain === undefined ? rest : { ...rest, domain });
    return (await this.#api.GET(`${USER}/profile`, call)).data!;
  }

  /** Lists the contradictions that consolidation reported, and contested memories with what they contest. */
  async contradictions(options: PlaceOptions & CallOptions = {}): Promise<UserContradiction[]> {
    const [call, place] = split(options);
    return (await this.#api.GET(`${USER}/contradictions`, this.#read(call, place))).data!.items;
  }

  /** Lists the learned preferences. */
  async preferences(options: CallOptions = {}): Promise<LearnedPreference[]> {
    return (await this.#api.GET(`${USER}/preferences`, this.#call(options))).data!.items;
  }

  /** Lists the detected patterns. */
  async patterns(options: CallOptions = {}): Promise<BehaviorPattern[]> {
    return (await this.#api.GET(`${USER}/patterns`, this.#call(options))).data!.items;
  }

  /** Puts something into the context for a limited time. */
  async addContext(item: ContextItemIn, options: CallOptions = {}): Promise<ContextItem> {
    return (await this.#api.POST(`${USER}/contexts`, { ...this.#call(options), body: item })).data!;
  }

  // Conversations

  /** Stores messages and extracts memories in the background; with `wait` returns the finished job. */
  messages(messages: readonly MessageIn[], options: MessagesOptions & { wait: true }): Promise<Job>;
  messages(messages: readonly MessageIn[], options?: MessagesOptions & { wait?: false }): Promise<MessagesAccepted>;
  async messages(messages: readonly MessageIn[], options: MessagesOptions = {}): Promise<MessagesAccepted | Job> {
    const [call, rest] = split(options.wait ? { timeout: null, ...options } : options);
    return (await this.#api.POST(`${USER}/messages`, { ...this.#call(call), body: { ...rest, messages: [...messages] } })).data!;
  }

  /** Records the user's rating of a message, 1 to 5, and returns what was learned from it. */
  async feedback(messageId: string, score: number, text?: string, options: CallOptions = {}): Promise<FeedbackResult> {
    const body = text === undefined ? { score } : { score, text };
    const call = { ...this.#call(options, { message_id: messageId }), body };
    return (await this.#api.POST(`${USER}/messages/{message_id}/feedback`, call)).data!;
  }

  /** Lists sessions, the latest first. */
  sessions(filters: SessionFilters = {}, options: CallOptions = {}): Listing<Session> {
    return this.#list(filters, async (query) => {
      const { data } = await this.#api.GET(`${USER}/sessions`, this.#read(options, query));
      return data!;
    });
  }

  /** Opens a session under an id of your own or a new one. */
  async openSession(session: SessionIn = {}, options: CallOptions = {}): Promise<Session> {
    return (await this.#api.POST(`${USER}/sessions`, { ...this.#call(options), body: session })).data!;
  }

  /** Lists the messages of a session, oldest first. */
  sessionMessages(sessionId: string, filters: MessageFilters = {}, options: CallOptions = {}): Listing<Message> {
    return this.#list(filters, async (query) => {
      const call = this.#read(options, query, { session_id: sessionId });
      return (await this.#api.GET(`${USER}/sessions/{session_id}/messages`, call)).data!;
    });
  }

  /** Closes a session; messages that were not extracted yet are extracted in the background. */
  async closeSession(sessionId: string, options: PlaceOptions & CallOptions = {}): Promise<Session> {
    const [own, place] = split(options);
    const call = this.#read(own, place, { session_id: sessionId });
    return (await this.#api.POST(`${USER}/sessions/{session_id}/close`, call)).data!;
  }

  // All data of the user

  /** Returns everything that is stored of the user, or in a `space`. */
  async export(options: PlaceOptions & CallOptions = {}): Promise<Record<string, unknown>> {
    const [own, place] = split({ timeout: null, ...options });
    const call = this.#read(own, place);
    return (await this.#api.GET(`${USER}/export`, call)).data as Record<string, unknown>;
  }

  /** Imports an export of graphmem, or data of another memory, for the user or into a `space`. */
  async import(
    data: Record<string, unknown> | unknown[],
    options: PlaceOptions & CallOptions = {},
  ): Promise<ImportResult> {
    const [own, place] = split({ timeout: null, ...options });
    const call = { ...this.#read(own, place), body: data as Record<string, never> };
    return (await this.#api.POST(`${USER}/import`, call)).data!;
  }

  /** Erases everything of the user, and counts what is left (admin). */
  async forget(options: CallOptions = {}): Promise<ErasureResult> {
    return (await this.#api.DELETE(USER, this.#call({ timeout: null, ...options }))).data!;
  }

  #call<Ids extends object>(options: CallOptions, ids: Ids = {} as Ids): UserCall<Ids> {
    return { params: { path: { user_id: this.id, ...ids } }, fetch: this.#transport.with(options) };
  }

  #read<Query, Ids extends object>(options: CallOptions, query: Query, ids: Ids = {} as Ids) {
    const { params, fetch } = this.#call(options, ids);
    return { params: { ...params, query }, fetch };
  }

  #list<Query extends { cursor?: string | null }, T>(
    filters: Query,
    read: (query: Query) => Promise<Page<T>>,
  ): Listing<T> {
    return new Listing((cursor) => read(cursor === undefined ? filters : { ...filters, cursor }));
  }
}

/** Returns the options of the call itself, and the others, which are sent. */
function split<Options extends CallOptions>(options: Options): [CallOptions, Omit<Options, keyof CallOptions>] {
  const { signal, timeout, idempotencyKey, ...rest } = options;
  return [{ signal, timeout, idempotencyKey }, rest];
}
