// Facts that contest others, which contexts show beside these; no other fact has `contests`.
// Compatible with: V0001
CREATE INDEX graphmem_fact_contests IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.contests);
