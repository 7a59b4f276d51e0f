// Messages, stored as episodes, and their sessions.

// name: fetch_texts(group_id, message_ids)
// Fetch the texts of messages without secrets.
MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids
RETURN m.message_id AS message_id, m.uuid AS uuid, coalesce(m.redacted, m.content) AS content,
       m.session_id AS session_id, m.author AS author, coalesce(m.caught, false) AS is_caught,
       m.role = 'user' AND m.sent_as IS NULL AS is_of_user

// name: find_stored(group_id, message_ids)
// Find the messages that are stored already, in full or archived, and the job that will read each.
MATCH (m:Episodic|ArchivedEpisode {group_id: $group_id}) WHERE m.message_id IN $message_ids
RETURN m.message_id AS message_id, m.session_id AS session_id, m.pending_job AS pending_job,
       coalesce(m.extracted_at, m.archived_at) AS extracted_at, m.created_at AS created_at,
       coalesce(m.sent_as, 'user') AS sent_as

// name: find_reading(group_id, message_ids)
// Find the part of a job that has read messages, the latest one.
MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids AND m.extracted_at IS NOT NULL
WITH max(m.extracted_at) AS at
MATCH (x:Extraction {group_id: $group_id}) WHERE x.created_at = at
RETURN x.extraction_id AS extraction_id ORDER BY extraction_id DESC LIMIT 1

// name: find_sessions(group_id, session_ids)
// Find sessions by id.
MATCH (s:Session {group_id: $group_id}) WHERE s.session_id IN $session_ids
RETURN s {.*} AS session

// name: get_or_create_session(group_id, session_id, properties, now)
// Fetch a session, creating it if needed.
MERGE (s:Session {group_id: $group_id, session_id: $session_id})
ON CREATE SET s += $properties, s.created_at = $now, s.updated_at = $now
RETURN s {.*} AS session

// name: append_messages(group_id, session_id, properties, rows, last_episode, batch, now)
// Append messages to a session, which is created with `properties` if needed, each linked to the one before it, for a job to
// read if one is given; the session lists its latest 200 intents.
MERGE (s:Session {group_id: $group_id, session_id: $session_id})
ON CREATE SET s += $properties, s.created_at = $now
SET s.message_count = s.message_count + size($rows), s.last_episode = $last_episode, s.updated_at = $now,
    s.intent_sequence = nullIf((coalesce(s.intent_sequence, []) + $batch.intents)[-200..], []), s.is_active = true, s.ended_at = null,
    s.archived_at = null
WITH s
CALL (s) {
  MATCH (u:User {group_id: $group_id})
  UNWIND $rows AS row
  CREATE (m:Episodic) SET m = row, m.revision = u.revision, m.pending_job = $batch.job_id, m.pending_store = $batch.job_store,
    m.pending_since = CASE WHEN $batch.job_id IS NOT NULL THEN datetime() END
  CREATE (s)-[:HAS_EPISODE {uuid: randomUUID(), group_id: $group_id, created_at: $now}]->(m)
  WITH m
  {{pack_message_vector}}
  RETURN count(*) AS stored
}
CALL () {
  UNWIND $batch.links AS link
  MATCH (a:Episodic {uuid: link[0]})
  MATCH (b:Episodic {uuid: link[1]})
  CREATE (a)-[:NEXT_EPISODE {uuid: randomUUID(), group_id: $group_id, created_at: $now}]->(b)
  RETURN count(*) AS linked
}
RETURN stored, linked

// name: set_vectors(group_id, rows)
// Store the vectors of messages.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH (m:Episodic {group_id: $group_id, message_id: row.message_id})
SET m.content_embedding = row.vector, m.revision = u.revision
WITH m
{{pack_message_vector}}

// name: load_messages(group_id, message_ids)
// Fetch messages by id, in the order of their session.
MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids
RETURN {{message_columns}} AS message ORDER BY m.session_id, m.position

// name: load_conversation_context(group_id, message_ids, preceding, known_at)
// Fetch messages in the order of their session, the last messages before them, the user's time zone, the domain of the
// messages, or else of their session unless a key of others opened it, and the time of the last message of the conversation before.
CALL () {
  MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids
  WITH m ORDER BY m.session_id, m.position
  RETURN collect({{message_columns}}) AS messages
}
WITH messages, messages[0][0].session_id AS session_id, messages[0][0].position AS position
CALL (session_id, position) {
  MATCH (m:Episodic {group_id: $group_id, session_id: session_id}) WHERE m.position < position
  WITH m ORDER BY m.position DESC LIMIT $preceding
  WITH m ORDER BY m.position
  RETURN collect({{message_columns}}) AS preceding
}
RETURN messages, preceding, COLLECT { MATCH (u:User {group_id: $group_id}) RETURN u.timezone }[0] AS timezone,
       coalesce(messages[0][0].domain,
                COLLECT {
                  MATCH (s:Session {group_id: $group_id, session_id: session_id})
                  WHERE NOT coalesce(s.sent_as IN {{text_of_others}}, false)
                  RETURN s.domain
                }[0]) AS domain,
       COLLECT {
         MATCH (s:Session) WHERE s.group_id = $group_id AND s.updated_at <= $known_at AND s.kind = 'conversation'
         WITH s ORDER BY s.updated_at DESC LIMIT 50
         MATCH (m:Episodic {uuid: s.last_episode})
         WHERE s.session_id <> session_id AND m.valid_at.epochSeconds * 1000000 < messages[0][1][0]
         RETURN max(m.valid_at)
       }[0] AS previous_at

// name: list_session_messages(group_id, session_id, after, limit)
// Fetch a session's messages in order, one page.
MATCH (m:Episodic {group_id: $group_id, session_id: $session_id}) WHERE m.position > $after
RETURN {{message_columns}} AS message ORDER BY m.position LIMIT $limit

// name: list_unextracted(group_id, session_id)
// Find the messages of a session that no job has read or will read.
MATCH (m:Episodic {group_id: $group_id, session_id: $session_id})
WHERE m.position >= 0 AND m.extracted_at IS NULL AND m.pending_job IS NULL
RETURN {{message_columns}} AS message ORDER BY m.position

// name: assign_to_job(group_id, message_ids, job_id, job_store)
// Record which job will read messages, and the store that it is queued in.
MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids
SET m.pending_job = $job_id, m.pending_store = $job_store, m.pending_since = datetime()

// name: mark_extracted(group_id, message_ids, at)
// Record that extraction has read messages; the caller has locked the user.
MATCH (u:User {group_id: $group_id})
MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids
SET m.extracted_at = $at, m.revision = u.revision
REMOVE m.pending_job, m.pending_store, m.pending_since

// name: release_from_job(group_id, job_id)
// Release the messages that a job was to read.
MATCH (m:Episodic {pending_job: $job_id}) USING INDEX SEEK m:Episodic(pending_job) WHERE m.group_id = $group_id
REMOVE m.pending_job, m.pending_store, m.pending_since

// name: list_pending_of_job(group_id, job_id)
// Fetch the messages that a job has not read yet.
MATCH (m:Episodic {pending_job: $job_id}) USING INDEX SEEK m:Episodic(pending_job) WHERE m.group_id = $group_id
RETURN {{message_columns}} AS message ORDER BY m.session_id, m.position

// name: list_pending(job_store, foreign_after)
// Find the messages that a job of a store has not read yet, by job; after some time those of other stores too.
MATCH (m:Episodic) WHERE m.pending_job IS NOT NULL
  AND (coalesce(m.pending_store, $job_store) = $job_store OR m.pending_since < datetime() - $foreign_after)
WITH m ORDER BY m.position
RETURN m.group_id AS group_id, m.pending_job AS job_id, m.session_id AS session_id,
       collect(m.message_id) AS message_ids

// name: get_session(group_id, session_id)
// Fetch one session.
MATCH (s:Session {group_id: $group_id, session_id: $session_id})
RETURN s {.*} AS session

// name: list_archives(group_id, session_id)
// List the archives of a session, the oldest first.
MATCH (a:SessionArchive {group_id: $group_id, session_id: $session_id})
RETURN a {.session_id, .summary, .message_count, .started_at, .ended_at, archived_at: a.created_at} AS archive
ORDER BY a.started_at, a.created_at

// name: find_session_owners(tenant_prefix, session_id)
// Find the users of a tenant that have a session of an id, up to two.
MATCH (s:Session {session_id: $session_id}) WHERE s.group_id STARTS WITH $tenant_prefix
RETURN s.group_id AS group_id ORDER BY group_id LIMIT 2

// name: list_sessions(group_id, active, after_at, after_id, limit)
// List a user's sessions, the latest first, one page.
MATCH (s:Session {group_id: $group_id})
WHERE ($active IS NULL OR s.is_active = $active)
  AND ($after_at IS NULL OR s.updated_at < $after_at OR s.updated_at = $after_at AND s.session_id > $after_id)
RETURN s {.*} AS session ORDER BY s.updated_at DESC, s.session_id LIMIT $limit

// name: close_session(group_id, session_id, now)
// End a session; one that has ended stays unchanged.
MATCH (s:Session {group_id: $group_id, session_id: $session_id})
SET s.ended_at = coalesce(s.ended_at, $now), s.is_active = false, s.updated_at = coalesce(s.ended_at, $now)
RETURN s {.*} AS session

// name: set_timezone(group_id, timezone, timezone_source_kind, permitted)
// Store a user's time zone as a source gives it; one of a source that is not among the `permitted` ones stays.
MATCH (u:User {group_id: $group_id}) WHERE u.timezone IS NULL OR coalesce(u.timezone_source_kind, 'user') IN $permitted
SET u.timezone = $timezone, u.timezone_source_kind = $timezone_source_kind

// name: get_timezone(group_id)
// Fetch a user's time zone.
MATCH (u:User {group_id: $group_id}) RETURN u.timezone AS timezone

// name: save_summary(group_id, session_id, summary, title, tags, sentiment, through, now)
// Store a summary of the messages of a session up to a position; the caller has locked the user.
MATCH (s:Session {group_id: $group_id, session_id: $session_id})
SET s.summary = $summary, s.title = $title, s.summarized_through = $through, s.updated_at = $now,
    s.sentiment_score = coalesce($sentiment, s.sentiment_score),
    s.topic_tags = {{added_topic_tags}}

// name: list_summary_facts(group_id, session_id)
// Fetch the believed summaries of a session.
MATCH ()-[r:RELATES_TO {group_id: $group_id, session_id: $session_id}]->()
WHERE r.expired_at IS NULL AND r.source_kind = 'consolidation' AND r.metadata CONTAINS '"summary_of":'
RETURN {{fact_version}}

// name: list_remembered(group_id, session_id, limit)
// List the contents of the latest believed memories of a session, but its summaries, the latest last.
MATCH ()-[r:RELATES_TO {group_id: $group_id, session_id: $session_id}]->()
WHERE r.expired_at IS NULL AND r.type <> 'conversation_summary' AND r.status <> 'contested'
WITH r ORDER BY r.known_from DESC, r.fact LIMIT $limit
WITH r.fact AS content, r.known_from AS known_from ORDER BY known_from, content
RETURN content

// name: list_episodic_facts(group_id, session_id)
// Fetch the believed memories that are recalled in their session only.
MATCH ()-[r:RELATES_TO {group_id: $group_id, session_id: $session_id}]->()
WHERE r.expired_at IS NULL AND r.scope = 'episodic' AND r.valid_from < r.valid_to
RETURN {{fact_version}}
ORDER BY r.known_from
