// The graph: who is who, what is known, and the keys that keep both unique.
// Statements end with a semicolon, use IF NOT EXISTS and may be replayed; {{dimension}} is the embedder's.

// One node per user: every write of a user locks it, so that they happen one after the other.
CREATE CONSTRAINT graphmem_user IF NOT EXISTS FOR (u:User) REQUIRE u.group_id IS UNIQUE;
CREATE INDEX graphmem_user_tenant IF NOT EXISTS FOR (u:User) ON (u.tenant);

// Entities: one per user and name.
CREATE CONSTRAINT graphmem_entity_name IF NOT EXISTS FOR (e:Entity) REQUIRE (e.group_id, e.name_key) IS UNIQUE;
CREATE INDEX entity_uuid IF NOT EXISTS FOR (n:Entity) ON (n.uuid);
CREATE INDEX entity_group_id IF NOT EXISTS FOR (n:Entity) ON (n.group_id);

// Facts: one current edge per statement; rows of one memory are told apart by their version.
CREATE CONSTRAINT graphmem_fact_active IF NOT EXISTS FOR ()-[r:RELATES_TO]-() REQUIRE (r.group_id, r.active_hash) IS UNIQUE;
CREATE CONSTRAINT graphmem_fact_version IF NOT EXISTS FOR ()-[r:RELATES_TO]-() REQUIRE (r.group_id, r.memory_id, r.version) IS UNIQUE;
CREATE INDEX relation_uuid IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON (e.uuid);
CREATE INDEX relation_group_id IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON (e.group_id);
CREATE INDEX graphmem_fact_memory IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.memory_id);
CREATE INDEX graphmem_fact_content IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.content_hash);

// Messages (episodes) and sessions.
CREATE CONSTRAINT graphmem_message IF NOT EXISTS FOR (m:Episodic) REQUIRE (m.group_id, m.message_id) IS UNIQUE;
CREATE CONSTRAINT graphmem_session IF NOT EXISTS FOR (s:Session) REQUIRE (s.group_id, s.session_id) IS UNIQUE;
CREATE INDEX episode_uuid IF NOT EXISTS FOR (n:Episodic) ON (n.uuid);
CREATE INDEX episode_group_id IF NOT EXISTS FOR (n:Episodic) ON (n.group_id);
CREATE INDEX graphmem_message_session IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.session_id, m.valid_at);
CREATE INDEX graphmem_session_id IF NOT EXISTS FOR (s:Session) ON (s.session_id);

// Keys and idempotent answers.
CREATE CONSTRAINT graphmem_key IF NOT EXISTS FOR (k:ApiKey) REQUIRE k.hash IS UNIQUE;
CREATE INDEX graphmem_key_tenant IF NOT EXISTS FOR (k:ApiKey) ON (k.tenant);
CREATE CONSTRAINT graphmem_idempotency IF NOT EXISTS FOR (i:IdempotentRequest) REQUIRE (i.tenant, i.route, i.key) IS UNIQUE;

// Full text; the names are those Graphiti looks for, so that one index serves both.
CREATE FULLTEXT INDEX edge_name_and_fact IF NOT EXISTS FOR ()-[e:RELATES_TO]-() ON EACH [e.name, e.fact, e.group_id, e.group_key, e.search_text];
CREATE FULLTEXT INDEX episode_content IF NOT EXISTS FOR (e:Episodic) ON EACH [e.content, e.source, e.source_description, e.group_id, e.group_key];
CREATE FULLTEXT INDEX node_name_and_summary IF NOT EXISTS FOR (n:Entity) ON EACH [n.name, n.summary, n.group_id, n.group_key, n.alias_text];

// Vectors, filtered inside the index by user and by both axes of time.
CYPHER 25 CREATE VECTOR INDEX graphmem_fact_vector IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON r.fact_embedding
WITH [r.group_id, r.valid_from, r.valid_to, r.known_from, r.known_to]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine'}};
CYPHER 25 CREATE VECTOR INDEX graphmem_message_vector IF NOT EXISTS FOR (m:Episodic) ON m.content_embedding
WITH [m.group_id, m.session_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine'}};
CYPHER 25 CREATE VECTOR INDEX graphmem_entity_vector IF NOT EXISTS FOR (e:Entity) ON e.name_embedding
WITH [e.group_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine'}};
