// Which memories a context held, until it expires: for feedback on the answer that it led to.
CREATE CONSTRAINT graphmem_context_use IF NOT EXISTS FOR (c:ContextUse) REQUIRE (c.group_id, c.uuid) IS UNIQUE;
CREATE INDEX graphmem_context_use_group IF NOT EXISTS FOR (c:ContextUse) ON (c.group_id);
