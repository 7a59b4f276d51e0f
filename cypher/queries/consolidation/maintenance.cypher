// Maintenance: decay, expiry and archiving.

// name: list_decaying_facts(group_id, now, before, core_importance)
// List the current memories that nobody has read since a time, except those of the core profile.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND NOT r.immutable AND r.valid_from <= $now AND r.valid_to > $now
  AND NOT (r.scope = 'profile' AND r.importance >= $core_importance) AND {{is_statement}}
WITH r, reduce(latest = r.first_created_at, at IN [t IN [r.last_accessed_at, r.decayed_at] WHERE t IS NOT NULL] |
  CASE WHEN at > latest THEN at ELSE latest END) AS since
WHERE since < $before
RETURN r.uuid AS uuid, r.importance AS importance, since

// name: set_importance(group_id, rows)
// Lower the importance of memories, and store the time from which the next decay counts.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH ()-[r:RELATES_TO {uuid: row.uuid}]->() WHERE r.group_id = $group_id
SET r.importance = row.importance, r.decayed_at = row.decayed_at, r.revision = u.revision

// name: list_expired_memories(group_id, now)
// List the believed memories whose time is over.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND NOT r.immutable AND NOT r.retired AND r.expires_at <= $now
RETURN r.memory_id AS memory_id

// name: requeue_feedback(group_id, now, before)
// Make feedback that no run has considered for a while available to the next consolidation.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND NOT r.immutable AND 'feedback' IN r.tags AND r.valid_from <= $now AND r.valid_to > $now
  AND coalesce(r.reviewed_at, r.first_created_at) < $before
SET r.reviewed_at = $now
REMOVE r.consolidated_at, r.consolidated_by
RETURN count(r) AS reviewed

// name: archive_idle_sessions(group_id, before, now)
// Archive the sessions in which nothing was said since a time.
MATCH (s:Session {group_id: $group_id}) WHERE s.archived_at IS NULL
WITH s, {{session_said_at}} AS said_at
WHERE said_at < $before
SET s.archived_at = $now, s.is_active = false, s.ended_at = coalesce(s.ended_at, said_at)
RETURN count(s) AS archived

// name: list_sessions_to_archive(group_id, before, max_messages)
// List the sessions that begin with more than `max_messages` old messages, and how far each is summarized.
MATCH (s:Session {group_id: $group_id})
CALL (s) {
  MATCH (m:Episodic {group_id: s.group_id, session_id: s.session_id}) WHERE m.valid_at >= $before
  RETURN min(m.position) AS first_young
}
MATCH (m:Episodic {group_id: s.group_id, session_id: s.session_id})
WHERE m.valid_at < $before AND (first_young IS NULL OR m.position < first_young) AND m.pending_job IS NULL
WITH s, count(m) AS old, max(m.position) AS through
WHERE old > $max_messages
RETURN s.session_id AS session_id, through, old, s.summarized_through AS summarized_through
ORDER BY session_id

// name: archive_messages(group_id, session_id, through, before, archive_id, now)
// Replace the text of the messages that a summary covers by an archive node that holds the summary.
MATCH (s:Session {group_id: $group_id, session_id: $session_id})
WHERE s.summary IS NOT NULL AND s.summarized_through >= $through
MATCH (m:Episodic {group_id: $group_id, session_id: $session_id})
WHERE m.position <= $through AND m.valid_at < $before AND m.pending_job IS NULL
WITH s, m ORDER BY m.position
WITH s, collect(m) AS old, sum(size(m.content)) AS characters
CREATE (a:SessionArchive {uuid: $archive_id, group_id: $group_id, session_id: $session_id, summary: s.summary,
  message_count: size(old), started_at: head(old).valid_at, ended_at: last(old).valid_at, created_at: $now})
CREATE (s)-[:HAS_ARCHIVE {uuid: randomUUID(), group_id: $group_id, created_at: $now}]->(a)
WITH s, old, characters
UNWIND old AS m
SET m = m {.uuid, .group_id, .message_id, .session_id, .position, .role, .valid_at, .created_at, .extracted_at,
           archived_at: $now}
REMOVE m:Episodic
SET m:ArchivedEpisode
RETURN count(m) AS archived, max(size(s.summary)) AS kept, max(characters) AS characters

// name: estimate_stored_bytes(sample)
// Estimate the bytes of all messages and facts: their number times the mean size of a sample.
CALL () {
  MATCH (m:Episodic) RETURN count(m) AS messages
}
CALL () {
  MATCH ()-[r:RELATES_TO]->() RETURN count(r) AS facts
}
CALL () {
  MATCH (m:Episodic) WITH m LIMIT $sample
  RETURN avg(size(m.content) + 8 * size(coalesce(m.content_embedding, []))) AS message_bytes
}
CALL () {
  MATCH ()-[r:RELATES_TO]->() WITH r LIMIT $sample
  RETURN avg(size(r.fact) + size(coalesce(r.search_text, '')) + 8 * size(coalesce(r.fact_embedding, []))) AS fact_bytes
}
RETURN toInteger(messages * coalesce(message_bytes, 0) + facts * coalesce(fact_bytes, 0)) AS bytes
