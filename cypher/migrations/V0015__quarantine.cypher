// Statements in quarantine, which no read of memories finds: one node a content and group.
CREATE CONSTRAINT graphmem_quarantine_id IF NOT EXISTS FOR (q:QuarantinedStatement) REQUIRE q.id IS UNIQUE;
CREATE CONSTRAINT graphmem_quarantine_content IF NOT EXISTS FOR (q:QuarantinedStatement)
  REQUIRE (q.group_id, q.content_hash) IS UNIQUE;
CREATE INDEX graphmem_quarantine_group IF NOT EXISTS FOR (q:QuarantinedStatement) ON (q.group_id);
CREATE INDEX graphmem_quarantine_tenant IF NOT EXISTS FOR (q:QuarantinedStatement) ON (q.tenant);
