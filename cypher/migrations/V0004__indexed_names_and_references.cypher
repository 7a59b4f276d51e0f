// Lookups that no longer read every node of a label, and lists that no longer grow with every write.

// A session by its id within one tenant: the group ids of a tenant begin alike.
CREATE INDEX graphmem_session_tenant IF NOT EXISTS FOR (s:Session) ON (s.session_id, s.group_id);
DROP INDEX graphmem_session_id IF EXISTS;

// Unfinished runs of a trigger, and runs that finished before a time.
CREATE INDEX graphmem_run_trigger IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.trigger, r.status);
CREATE INDEX graphmem_run_finished IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.finished_at);

// Idempotent requests past their retention.
CREATE INDEX graphmem_idempotency_time IF NOT EXISTS FOR (i:IdempotentRequest) ON (i.created_at);

// Aliases: one node per user and key, linked to every entity that has the alias. An entity's `alias_keys` are unchanged.
CREATE CONSTRAINT graphmem_alias IF NOT EXISTS FOR (a:EntityAlias) REQUIRE (a.group_id, a.key) IS UNIQUE;
CREATE INDEX graphmem_alias_group IF NOT EXISTS FOR (a:EntityAlias) ON (a.group_id);
MATCH (e:Entity) WHERE e.alias_keys <> []
CALL (e) {
  UNWIND e.alias_keys AS key
  MERGE (a:EntityAlias {group_id: e.group_id, key: key})
  MERGE (a)-[:ALIAS_OF]->(e)
} IN TRANSACTIONS OF 1000 ROWS;

// References: what a memory mentions beside its subject and object, from the subject to each. They replace the list
// `mentioned_in` of the entity.
CREATE INDEX graphmem_reference_memory IF NOT EXISTS FOR ()-[m:REFERS_TO]-() ON (m.group_id, m.memory_id);
MATCH (s:Entity)-[r:RELATES_TO]->(o) WHERE any(id IN r.entity_ids WHERE id <> s.uuid AND id <> o.uuid)
CALL (s, r, o) {
  UNWIND r.entity_ids AS id
  MATCH (e:Entity {uuid: id}) WHERE e <> s AND e <> o AND e.group_id = r.group_id
  MERGE (s)-[:REFERS_TO {group_id: r.group_id, memory_id: r.memory_id}]->(e)
} IN TRANSACTIONS OF 1000 ROWS;
MATCH (e:Entity) WHERE e.mentioned_in IS NOT NULL
CALL (e) {
  REMOVE e.mentioned_in
} IN TRANSACTIONS OF 1000 ROWS;

// The latest facts of a message, and the latest messages of a fact, as `store.fact_write` and `domain.fact` limit them.
MATCH (m:Episodic) WHERE size(m.entity_edges) > 100
CALL (m) {
  SET m.entity_edges = m.entity_edges[-100..]
} IN TRANSACTIONS OF 1000 ROWS;
MATCH ()-[r:RELATES_TO]->() WHERE size(r.message_ids) > 200 OR size(r.episodes) > 200
CALL (r) {
  SET r.message_ids = r.message_ids[-200..], r.episodes = r.episodes[-200..]
} IN TRANSACTIONS OF 1000 ROWS;
