// Messages: each once, in a session of its user.

// name: messages_without_session(tenant, limit)
// A message belongs to no session.
// Fix: Restore a backup, or forget the user.
MATCH (m:Episodic|ArchivedEpisode)
WHERE NOT EXISTS { MATCH (:Session {group_id: m.group_id, session_id: m.session_id})-[:HAS_EPISODE]->(m) }
WITH m.group_id AS group_id, m.message_id AS id
{{violation}}

// name: repeated_positions(tenant, limit)
// Two messages have the same place in a session.
// Fix: Report it: two writers stored messages at once. Restore a backup.
MATCH (s:Session)
CALL (s) {
  MATCH (s)-[:HAS_EPISODE]->(m)
  WITH m.position AS position, collect(m.message_id) AS ids
  WHERE size(ids) > 1
  UNWIND ids AS id
  RETURN id
}
WITH s.group_id AS group_id, id
{{violation}}

// name: wrong_message_counts(tenant, limit)
// A session counts another number of messages than it has, those of an extraction included.
// Fix: Restore a backup, or export the user, forget them and import the export.
MATCH (s:Session)
WHERE s.message_count <> COUNT { (s)-[:HAS_EPISODE]->() } + size(coalesce(s.transcript, []))
WITH s.group_id AS group_id, s.session_id AS id
{{violation}}

// name: read_and_pending(tenant, limit)
// A message waits for a job that has read it.
// Fix: Restart graphmem; if it stays, report it.
MATCH (m:Episodic) WHERE m.pending_job IS NOT NULL AND m.extracted_at IS NOT NULL
WITH m.group_id AS group_id, m.message_id AS id
{{violation}}
