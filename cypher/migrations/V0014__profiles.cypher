// Profiles of entities, found by the entity that they are about; no other memory has `profile_of`.
CREATE INDEX graphmem_fact_profile IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON (r.group_id, r.profile_of);
