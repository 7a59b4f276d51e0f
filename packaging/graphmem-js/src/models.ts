/** The models of the API under short names; `components` has all of them. */

import type { components, operations } from "./schema.js";

type Schemas = components["schemas"];
type Query<Id extends keyof operations> = NonNullable<operations[Id]["parameters"]["query"]>;

export type Problem = Schemas["Problem"];
export type ProblemType = Problem["type"];

export type Memory = Schemas["Memory"];
export type MemoryIn = Schemas["MemoryIn"];
export type MemoryPatch = Schemas["MemoryPatch"];
export type MemoryVersion = Schemas["MemoryVersion"];
export type MemoryChange = Schemas["MemoryChange"];
export type SaveResult = Schemas["SaveResult"];
export type SearchQuery = Schemas["SearchQuery"];
export type SearchResponse = Schemas["SearchResponse"];
export type SearchHit = Schemas["SearchHit"];
export type MessageSearchQuery = Schemas["MessageSearchQuery"];
export type MessageSearchResponse = Schemas["MessageSearchResponse"];
export type LookupResponse = Schemas["LookupResponse"];
export type Entity = Schemas["Entity"];
export type ProfiledEntity = Schemas["ProfiledEntity"];
export type EntityGraph = Schemas["EntityGraph"];
export type AskRequest = Schemas["AskRequest"];
export type AskResponse = Schemas["AskResponse"];
export type Citation = Schemas["Citation"];
export type ContextRequest = Schemas["ContextRequest"];
export type ContextResponse = Schemas["ContextResponse"];
export type ContextItem = Schemas["ContextItem"];
export type ContextItemIn = Schemas["ContextItemIn"];
export type EnhanceIn = Schemas["EnhanceIn"];
export type EnhancedReply = Schemas["EnhancedReply"];
export type Message = Schemas["Message"];
export type MessageIn = Schemas["MessageIn"];
export type MessagesIn = Schemas["MessagesIn"];
export type MessagesAccepted = Schemas["MessagesAccepted"];
export type FeedbackIn = Schemas["FeedbackIn"];
export type FeedbackResult = Schemas["FeedbackResult"];
export type Session = Schemas["Session"];
export type SessionIn = Schemas["SessionIn"];
export type Job = Schemas["Job"];
export type UserProfile = Schemas["UserProfile"];
export type LearnedPreference = Schemas["LearnedPreference"];
export type BehaviorPattern = Schemas["BehaviorPattern"];
export type ErasureResult = Schemas["ErasureResult"];
export type ImportResult = Schemas["ImportResult"];
export type UserSummary = Schemas["UserSummary"];
export type UserContradiction = Schemas["UserContradiction"];
export type Space = Schemas["Space"];
export type SpaceIn = Schemas["SpaceIn"];
export type SpaceMember = Schemas["SpaceMember"];
export type SpaceRole = Schemas["SpaceRole"];
export type MemberKind = Schemas["MemberKind"];
export type Trust = Schemas["Trust"];
/** Whose word a memory can be said to be. */
export type StatedKind = Schemas["TrustIn"]["order"][number][number];
export type QuarantinedStatement = Schemas["QuarantinedStatement"];

export type MemoryFilters = Query<"memories_list">;
export type LookupOptions = Omit<Query<"entities_lookup">, "q">;
export type ChangeFilters = Query<"memories_list_changes">;
export type EntityFilters = Query<"entities_list">;
export type SessionFilters = Query<"sessions_list">;
export type MessageFilters = Query<"sessions_messages">;
export type UserFilters = Query<"users_list">;
export type ProfileOptions = Query<"profile_get">;
/** The space that a call is about; without it the memory of the user. */
export type PlaceOptions = Query<"contradictions_list">;
export type QuarantineFilters = Query<"quarantine_list">;
export type GraphOptions = Query<"entities_graph">;
