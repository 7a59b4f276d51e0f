// Extraction: what still waits to be read, what was applied, and interests that were mentioned once.

// A message carries `pending_job` only until the job that reads it has been applied.
CREATE INDEX graphmem_message_pending IF NOT EXISTS FOR (m:Episodic) ON (m.pending_job);
CREATE INDEX graphmem_message_position IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.session_id, m.position);
CREATE INDEX graphmem_session_group IF NOT EXISTS FOR (s:Session) ON (s.group_id);

// One node per applied part of a job: what is there is not applied again.
CREATE CONSTRAINT graphmem_extraction IF NOT EXISTS FOR (x:Extraction) REQUIRE (x.group_id, x.extraction_id) IS UNIQUE;
CREATE INDEX graphmem_extraction_group IF NOT EXISTS FOR (x:Extraction) ON (x.group_id);

// An interest becomes a memory when it is mentioned again.
CREATE CONSTRAINT graphmem_interest IF NOT EXISTS FOR (i:InterestCandidate) REQUIRE (i.group_id, i.key) IS UNIQUE;
CREATE INDEX graphmem_interest_group IF NOT EXISTS FOR (i:InterestCandidate) ON (i.group_id);
