// What changed between two known times, by user: versions by when they began and ended, and what rollbacks restored.
CREATE INDEX graphmem_fact_created IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.created_at);
CREATE INDEX graphmem_fact_expired IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.expired_at);
CREATE INDEX graphmem_change_created IF NOT EXISTS FOR (c:Change) ON (c.group_id, c.created_at);
