/** The client of graphmem, a memory service for agents. */

export * from "./errors.js";
export { DEFAULT_SERVER_URL, Graphmem, type GraphmemOptions } from "./graphmem.js";
export { Listing, type Page } from "./listing.js";
export type * from "./models.js";
export type { components, operations, paths } from "./schema.js";
export type { CallOptions } from "./transport.js";
export { type MessagesOptions, type Statement, User } from "./user.js";
