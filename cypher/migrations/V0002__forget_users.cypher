// Forgetting a user in bounded parts, without reading what belongs to others.

// The mark that a user is being forgotten. From its transaction on, nothing of the user is written or read.
CREATE CONSTRAINT graphmem_erasure IF NOT EXISTS FOR (e:Erasure) REQUIRE e.group_id IS UNIQUE;

// Every label of a user's data by its user alone; a composite index serves only queries that bound all its properties.
CREATE INDEX graphmem_archived_message_group IF NOT EXISTS FOR (m:ArchivedEpisode) ON (m.group_id);
CREATE INDEX graphmem_session_archive_group IF NOT EXISTS FOR (a:SessionArchive) ON (a.group_id);
CREATE INDEX graphmem_change_user IF NOT EXISTS FOR (c:Change) ON (c.group_id);
CREATE INDEX graphmem_context_item_group IF NOT EXISTS FOR (c:ContextItem) ON (c.group_id);
CREATE INDEX graphmem_preference_group IF NOT EXISTS FOR (p:LearnedPreference) ON (p.group_id);
CREATE INDEX graphmem_pattern_group IF NOT EXISTS FOR (p:BehaviorPattern) ON (p.group_id);
CREATE INDEX graphmem_intent_group IF NOT EXISTS FOR (i:LearnedIntent) ON (i.group_id);
CREATE INDEX graphmem_idempotency_owner IF NOT EXISTS FOR (i:IdempotentRequest) ON (i.owner_group);
