// The schema.
//
// Migrations are append-only: never edit this file or one that follows it. A database records the checksum of every
// migration it has run and refuses to start with another one, so put a change into a new file with the next version.
//
// Statements end with a semicolon and may be replayed, so every statement has IF NOT EXISTS (or IF EXISTS).
// {{dimension}} is replaced by the dimension of the embedding model.

// Users. Every write locks the node of its user, so that the writes of one user happen one after the other.
CREATE CONSTRAINT graphmem_user IF NOT EXISTS FOR (u:User) REQUIRE u.group_id IS UNIQUE;
CREATE INDEX graphmem_user_tenant IF NOT EXISTS FOR (u:User) ON (u.tenant, u.user_id);
// Users by when their memories were last written, for what a webhook has yet to deliver.
CREATE INDEX graphmem_user_written IF NOT EXISTS FOR (u:User) ON (u.tenant, u.last_write_at);
// The mark that a user is being forgotten. From its transaction on, nothing of the user is written or read.
CREATE CONSTRAINT graphmem_erasure IF NOT EXISTS FOR (e:Erasure) REQUIRE e.group_id IS UNIQUE;

// Spaces, which are nodes of groups as users are, and the roles of their members.
CREATE INDEX graphmem_space_tenant IF NOT EXISTS FOR (s:SharedSpace) ON (s.tenant);
CREATE CONSTRAINT graphmem_space_member IF NOT EXISTS FOR (m:SpaceMember) REQUIRE (m.group_id, m.member) IS UNIQUE;
CREATE INDEX graphmem_space_member_group IF NOT EXISTS FOR (m:SpaceMember) ON (m.group_id);
CREATE INDEX graphmem_space_member_member IF NOT EXISTS FOR (m:SpaceMember) ON (m.member);

// Tenants: one node a tenant for its instructions, its declared types of memories and entities, and its order of trust.
CREATE CONSTRAINT graphmem_instructions IF NOT EXISTS FOR (i:TenantInstructions) REQUIRE i.tenant IS UNIQUE;
CREATE CONSTRAINT graphmem_declared_types IF NOT EXISTS FOR (t:TenantTypes) REQUIRE t.tenant IS UNIQUE;
CREATE CONSTRAINT graphmem_trust IF NOT EXISTS FOR (t:TenantTrust) REQUIRE t.tenant IS UNIQUE;

// A composite index serves only queries that bound all its properties, so that every label of a user's data also has an
// index of its user alone, by which the user is forgotten. By `revision`, what changed of a user since a read is found;
// see `queries/tenants/users.cypher`.

// Entities: one per user and name. The indexes named entity_* have the names that Graphiti uses.
CREATE CONSTRAINT graphmem_entity_name IF NOT EXISTS FOR (e:Entity) REQUIRE (e.group_id, e.name_key) IS UNIQUE;
CREATE INDEX entity_uuid IF NOT EXISTS FOR (n:Entity) ON (n.uuid);
CREATE INDEX entity_group_id IF NOT EXISTS FOR (n:Entity) ON (n.group_id);
CREATE INDEX graphmem_entity_revision IF NOT EXISTS FOR (e:Entity) ON (e.group_id, e.revision);

// Aliases: one node per user and key, linked to every entity that has the alias.
CREATE CONSTRAINT graphmem_alias IF NOT EXISTS FOR (a:EntityAlias) REQUIRE (a.group_id, a.key) IS UNIQUE;
CREATE INDEX graphmem_alias_group IF NOT EXISTS FOR (a:EntityAlias) ON (a.group_id);

// Facts: one current version per statement, and one version of each number per memory. The indexes named relation_* have
// the names that Graphiti uses.
CREATE CONSTRAINT graphmem_fact_active IF NOT EXISTS FOR ()-[r:RELATES_TO]-() REQUIRE (r.group_id, r.active_hash) IS UNIQUE;
CREATE CONSTRAINT graphmem_fact_version IF NOT EXISTS FOR ()-[r:RELATES_TO]-() REQUIRE (r.group_id, r.memory_id, r.version) IS UNIQUE;
CREATE INDEX relation_uuid IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON (e.uuid);
CREATE INDEX relation_group_id IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON (e.group_id);
CREATE INDEX graphmem_fact_memory IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.memory_id);
CREATE INDEX graphmem_fact_content IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.content_hash);
// Believed profile facts in the order of their importance, for contexts.
CREATE INDEX graphmem_fact_scope IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.scope, r.known_to, r.importance);
// Versions by when they began and ended, for what changed between two known times.
CREATE INDEX graphmem_fact_created IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.created_at);
CREATE INDEX graphmem_fact_expired IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.expired_at);
CREATE INDEX graphmem_fact_revision IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.revision);
// Profiles of entities, found by the entity that they are about; no other memory has `profile_of`.
CREATE INDEX graphmem_fact_profile IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.profile_of);
// Facts that contest others, which contexts show next to these; no other fact has `contests`.
CREATE INDEX graphmem_fact_contests IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.contests);
// References: what a memory mentions besides its subject and object, from the subject to each.
CREATE INDEX graphmem_reference_memory IF NOT EXISTS FOR ()-[m:REFERS_TO]-() ON (m.group_id, m.memory_id);

// Messages (episodes). `pending_job` is set until the job that reads a message has been applied.
CREATE CONSTRAINT graphmem_message IF NOT EXISTS FOR (m:Episodic) REQUIRE (m.group_id, m.message_id) IS UNIQUE;
CREATE INDEX episode_uuid IF NOT EXISTS FOR (n:Episodic) ON (n.uuid);
CREATE INDEX episode_group_id IF NOT EXISTS FOR (n:Episodic) ON (n.group_id);
CREATE INDEX graphmem_message_session IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.session_id, m.valid_at);
CREATE INDEX graphmem_message_position IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.session_id, m.position);
CREATE INDEX graphmem_message_said IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.role, m.valid_at);
CREATE INDEX graphmem_message_pending IF NOT EXISTS FOR (m:Episodic) ON (m.pending_job);
CREATE INDEX graphmem_message_revision IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.revision);

// Sessions, and what remains of messages whose text was replaced by a summary. A session is found by its id within one
// tenant, whose group ids begin alike.
CREATE CONSTRAINT graphmem_session IF NOT EXISTS FOR (s:Session) REQUIRE (s.group_id, s.session_id) IS UNIQUE;
CREATE INDEX graphmem_session_tenant IF NOT EXISTS FOR (s:Session) ON (s.session_id, s.group_id);
CREATE INDEX graphmem_session_group IF NOT EXISTS FOR (s:Session) ON (s.group_id);
CREATE INDEX graphmem_session_updated IF NOT EXISTS FOR (s:Session) ON (s.group_id, s.updated_at);
CREATE INDEX graphmem_archived_message IF NOT EXISTS FOR (m:ArchivedEpisode) ON (m.group_id, m.message_id);
CREATE INDEX graphmem_archived_message_group IF NOT EXISTS FOR (m:ArchivedEpisode) ON (m.group_id);
CREATE INDEX graphmem_session_archive IF NOT EXISTS FOR (a:SessionArchive) ON (a.group_id, a.session_id);
CREATE INDEX graphmem_session_archive_group IF NOT EXISTS FOR (a:SessionArchive) ON (a.group_id);

// Extraction: one node per applied part of a job, which is not applied again. An interest candidate becomes a memory
// when enough messages mention it.
CREATE CONSTRAINT graphmem_extraction IF NOT EXISTS FOR (x:Extraction) REQUIRE (x.group_id, x.extraction_id) IS UNIQUE;
CREATE INDEX graphmem_extraction_group IF NOT EXISTS FOR (x:Extraction) ON (x.group_id);
CREATE CONSTRAINT graphmem_interest IF NOT EXISTS FOR (i:InterestCandidate) REQUIRE (i.group_id, i.key) IS UNIQUE;
CREATE INDEX graphmem_interest_group IF NOT EXISTS FOR (i:InterestCandidate) ON (i.group_id);

// Statements in quarantine, which no read of memories finds: one node a content and group.
CREATE CONSTRAINT graphmem_quarantine_id IF NOT EXISTS FOR (q:QuarantinedStatement) REQUIRE q.id IS UNIQUE;
CREATE CONSTRAINT graphmem_quarantine_content IF NOT EXISTS FOR (q:QuarantinedStatement)
  REQUIRE (q.group_id, q.content_hash) IS UNIQUE;
CREATE INDEX graphmem_quarantine_group IF NOT EXISTS FOR (q:QuarantinedStatement) ON (q.group_id);
CREATE INDEX graphmem_quarantine_tenant IF NOT EXISTS FOR (q:QuarantinedStatement) ON (q.tenant);

// Consolidation runs, and the elements they changed with their state before and after.
CREATE CONSTRAINT graphmem_run IF NOT EXISTS FOR (r:ConsolidationRun) REQUIRE r.id IS UNIQUE;
CREATE INDEX graphmem_run_tenant IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.tenant, r.created_at);
CREATE INDEX graphmem_run_group IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.group_id);
// Unfinished runs, which are looked for at intervals, by their status, and those of a trigger.
CREATE INDEX graphmem_run_status IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.status);
CREATE INDEX graphmem_run_trigger IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.trigger, r.status);
CREATE CONSTRAINT graphmem_change IF NOT EXISTS FOR (c:Change) REQUIRE (c.run_id, c.kind, c.element_id) IS UNIQUE;
CREATE INDEX graphmem_change_group IF NOT EXISTS FOR (c:Change) ON (c.group_id, c.memory_id);
CREATE INDEX graphmem_change_user IF NOT EXISTS FOR (c:Change) ON (c.group_id);
CREATE INDEX graphmem_change_created IF NOT EXISTS FOR (c:Change) ON (c.group_id, c.created_at);

// Webhooks of tenants, and how far each of them has delivered the changes of each user.
CREATE CONSTRAINT graphmem_webhook IF NOT EXISTS FOR (w:Webhook) REQUIRE w.id IS UNIQUE;
CREATE INDEX graphmem_webhook_tenant IF NOT EXISTS FOR (w:Webhook) ON (w.tenant);
CREATE CONSTRAINT graphmem_webhook_cursor IF NOT EXISTS FOR (c:WebhookCursor) REQUIRE (c.webhook_id, c.group_id) IS UNIQUE;
CREATE INDEX graphmem_webhook_cursor_group IF NOT EXISTS FOR (c:WebhookCursor) ON (c.group_id);
CREATE INDEX graphmem_webhook_cursor_webhook IF NOT EXISTS FOR (c:WebhookCursor) ON (c.webhook_id);

// Context: items mentioned lately, what was learned about a user, and which memories a context held, until it expires.
CREATE CONSTRAINT graphmem_context_item IF NOT EXISTS FOR (c:ContextItem) REQUIRE (c.group_id, c.session_id, c.item_key) IS UNIQUE;
CREATE INDEX graphmem_context_item_group IF NOT EXISTS FOR (c:ContextItem) ON (c.group_id);
CREATE INDEX graphmem_context_item_expiry IF NOT EXISTS FOR (c:ContextItem) ON (c.group_id, c.expires_at);
CREATE CONSTRAINT graphmem_preference IF NOT EXISTS FOR (p:LearnedPreference) REQUIRE (p.group_id, p.preference_type, p.preference_key) IS UNIQUE;
CREATE INDEX graphmem_preference_group IF NOT EXISTS FOR (p:LearnedPreference) ON (p.group_id);
CREATE CONSTRAINT graphmem_pattern IF NOT EXISTS FOR (p:BehaviorPattern) REQUIRE (p.group_id, p.pattern_type, p.pattern_key) IS UNIQUE;
CREATE INDEX graphmem_pattern_group IF NOT EXISTS FOR (p:BehaviorPattern) ON (p.group_id);
CREATE CONSTRAINT graphmem_intent IF NOT EXISTS FOR (i:LearnedIntent) REQUIRE (i.group_id, i.intent) IS UNIQUE;
CREATE INDEX graphmem_intent_group IF NOT EXISTS FOR (i:LearnedIntent) ON (i.group_id);
CREATE CONSTRAINT graphmem_context_use IF NOT EXISTS FOR (c:ContextUse) REQUIRE (c.group_id, c.uuid) IS UNIQUE;
CREATE INDEX graphmem_context_use_group IF NOT EXISTS FOR (c:ContextUse) ON (c.group_id);

// API keys and idempotent requests.
CREATE CONSTRAINT graphmem_key IF NOT EXISTS FOR (k:ApiKey) REQUIRE k.hash IS UNIQUE;
CREATE INDEX graphmem_key_tenant IF NOT EXISTS FOR (k:ApiKey) ON (k.tenant);
CREATE CONSTRAINT graphmem_idempotency IF NOT EXISTS FOR (i:IdempotentRequest) REQUIRE (i.tenant, i.route, i.key) IS UNIQUE;
CREATE INDEX graphmem_idempotency_owner IF NOT EXISTS FOR (i:IdempotentRequest) ON (i.owner_group);
CREATE INDEX graphmem_idempotency_tenant IF NOT EXISTS FOR (i:IdempotentRequest) ON (i.tenant);
CREATE INDEX graphmem_idempotency_time IF NOT EXISTS FOR (i:IdempotentRequest) ON (i.created_at);

// In which graph each tenant lives. The first graph, the home, holds the locations; a tenant without one lives there.
CREATE CONSTRAINT graphmem_placement IF NOT EXISTS FOR (p:Placement) REQUIRE p.tenant IS UNIQUE;
CREATE CONSTRAINT graphmem_placement_table IF NOT EXISTS FOR (t:PlacementTable) REQUIRE t.name IS UNIQUE;
// In every graph that a tenant has moved from or to: whether it takes writes of the tenant.
CREATE CONSTRAINT graphmem_write_barrier IF NOT EXISTS FOR (b:WriteBarrier) REQUIRE b.tenant IS UNIQUE;

// Full text. Eventually consistent indexes are updated right after a write, so that no write waits for them; a query waits
// instead. The graphmem_* indexes stem words, so that "camped" finds "camping", and include the speaker of a message.
// folded_text: words without accents, in one Unicode form, and by pairs of letters in scripts without spaces.
CREATE FULLTEXT INDEX graphmem_fact_words IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.fact, e.search_text, e.folded_text, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};
CREATE FULLTEXT INDEX graphmem_message_words IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.speaker, e.folded_text, e.group_key]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};
// Graphiti searches these three by name; graphmem searches entity names in the last one.
CREATE FULLTEXT INDEX edge_name_and_fact IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.name, e.fact, e.group_id, e.group_key, e.search_text]
OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}};
CREATE FULLTEXT INDEX episode_content IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.source, e.source_description, e.group_id, e.group_key]
OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}};
CREATE FULLTEXT INDEX node_name_and_summary IF NOT EXISTS FOR (n:Entity) ON EACH [n.name, n.summary, n.group_id, n.group_key, n.alias_text]
OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}};

// Vectors, filtered inside the index by user, by both time axes and by domain. They are not quantized: their order is
// exact, and a filter that nothing passes is answered, on which quantized indexes failed once they had deletions.
CYPHER 25 CREATE VECTOR INDEX graphmem_fact_embedding IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON r.fact_embedding
WITH [r.group_id, r.valid_from, r.valid_to, r.known_from, r.known_to, r.domain]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
CYPHER 25 CREATE VECTOR INDEX graphmem_message_embedding IF NOT EXISTS FOR (m:Episodic) ON m.content_embedding
WITH [m.group_id, m.session_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
CYPHER 25 CREATE VECTOR INDEX graphmem_entity_embedding IF NOT EXISTS FOR (e:Entity) ON e.name_embedding
WITH [e.group_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
