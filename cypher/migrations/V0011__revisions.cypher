// What changed of a user after a revision is found by an index; see `queries/tenants/users.cypher`.
CREATE INDEX graphmem_fact_revision IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.revision);
CREATE INDEX graphmem_entity_revision IF NOT EXISTS FOR (e:Entity) ON (e.group_id, e.revision);
CREATE INDEX graphmem_message_revision IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.revision);
