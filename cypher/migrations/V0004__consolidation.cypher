// Consolidation runs and the before-images of what they changed.
CREATE CONSTRAINT graphmem_run IF NOT EXISTS FOR (r:ConsolidationRun) REQUIRE r.id IS UNIQUE;
CREATE INDEX graphmem_run_tenant IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.tenant, r.created_at);
CREATE INDEX graphmem_run_group IF NOT EXISTS FOR (r:ConsolidationRun) ON (r.group_id);
CREATE CONSTRAINT graphmem_change IF NOT EXISTS FOR (c:Change) REQUIRE (c.run_id, c.kind, c.element_id) IS UNIQUE;
CREATE INDEX graphmem_change_group IF NOT EXISTS FOR (c:Change) ON (c.group_id, c.memory_id);
CREATE INDEX graphmem_change_time IF NOT EXISTS FOR (c:Change) ON (c.created_at);
