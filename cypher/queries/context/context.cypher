// Context for a model's prompt, and what is learned from conversations.

// name: load_snapshot(group_id, group_ids, session_group_id, session_id, cached_version, now, valid_until, max_time, profile_limit, global_limit, contested_limit, message_limit, said_until, stored_until)
// Fetch the part of a context that does not depend on the question, in a list: empty if its version is `cached_version`.
// The session is that of a group: the user's own, or a space.
// The version is the write version of the user, of the tenant's global group and of the spaces that are read.
// A composite index is used only where every property of it is bounded, hence `m.position >= 0`, and its order only
// where every property is in ORDER BY, hence the properties that are equal in every row.
CALL () {
  {{write_version}}
}
CALL (write_version) {
  UNWIND CASE WHEN write_version = $cached_version THEN [] ELSE [1] END AS changed
  CALL () {
    MATCH ()-[r:RELATES_TO]->()
    WHERE r.group_id = $group_id AND r.scope = 'profile' AND r.known_to = $max_time AND r.importance >= 0.0
      AND r.valid_from < $valid_until AND r.valid_to > $now AND {{is_statement}}
    WITH r ORDER BY r.group_id DESC, r.scope DESC, r.known_to DESC, r.importance DESC, r.known_from DESC LIMIT $profile_limit
    RETURN collect(r) AS own_facts
  }
  CALL () {
    MATCH ()-[r:RELATES_TO]->()
    WHERE r.group_id IN $group_ids AND r.scope = 'global' AND r.known_to = $max_time AND r.importance >= 0.0
      AND r.valid_from < $valid_until AND r.valid_to > $now AND {{is_statement}}
    WITH r ORDER BY r.importance DESC, r.known_from DESC LIMIT $global_limit
    RETURN collect(r) AS global_facts
  }
  CALL () {
    UNWIND [group_id IN $group_ids WHERE split(group_id, ':')[1] STARTS WITH ' '] AS space_id
    CALL (space_id) {
      MATCH ()-[r:RELATES_TO]->()
      WHERE r.group_id = space_id AND r.scope = 'profile' AND r.known_to = $max_time AND r.importance >= 0.0
        AND r.valid_from < $valid_until AND r.valid_to > $now AND {{is_statement}}
      RETURN r ORDER BY r.group_id DESC, r.scope DESC, r.known_to DESC, r.importance DESC, r.known_from DESC LIMIT $global_limit
    }
    RETURN collect(r) AS space_facts
  }
  CALL (own_facts, global_facts, space_facts) {
    UNWIND own_facts + global_facts + space_facts AS r
    RETURN collect({{memory_columns}}) AS profile
  }
  CALL () {
    UNWIND $group_ids AS group_id
    CALL (group_id) {
      MATCH ()-[r:RELATES_TO]->() USING INDEX SEEK r:RELATES_TO(group_id, contests)
      WHERE r.group_id = group_id AND r.contests IS NOT NULL
        AND r.status = 'contested' AND r.expired_at IS NULL
      RETURN r ORDER BY r.known_from DESC LIMIT $contested_limit
    }
    RETURN collect({{memory_columns}}) AS contested
  }
  CALL () {
    OPTIONAL MATCH (s:Session {group_id: $session_group_id, session_id: $session_id})
    RETURN CASE WHEN s IS NULL THEN null ELSE {{session_columns}} END AS session
  }
  CALL () {
    MATCH (m:Episodic {group_id: $session_group_id, session_id: $session_id})
    WHERE m.position >= 0 AND m.valid_at <= $said_until AND m.created_at <= $stored_until
    WITH m ORDER BY m.position
    WITH count(m) AS stored, collect(DISTINCT m.intent) AS intents, avg(m.confidence) AS avg_confidence,
         avg(m.feedback_score) AS avg_feedback, min(m.valid_at) AS first_at, max(m.valid_at) AS last_at
    RETURN [{stored: stored, intents: intents, avg_confidence: avg_confidence, avg_feedback: avg_feedback},
            [at IN [first_at, last_at] | at.epochSeconds * 1000000 + at.microsecond]] AS statistics
  }
  CALL () {
    MATCH (m:Episodic {group_id: $session_group_id, session_id: $session_id})
    WHERE m.position >= 0 AND m.valid_at <= $said_until AND m.created_at <= $stored_until
    WITH m ORDER BY m.group_id DESC, m.session_id DESC, m.position DESC LIMIT $message_limit
    RETURN collect({{message_columns}}) AS messages
  }
  CALL () {
    {{active_items}}
  }
  CALL () {
    {{learned_preferences}}
  }
  CALL () {
    {{active_patterns}}
  }
  CALL () {
    {{learned_intents}}
  }
  CALL () {
    MATCH (s:Session) WHERE s.group_id = $group_id AND s.updated_at <= $now AND s.kind = 'conversation'
      AND ($session_id IS NULL OR s.session_id <> $session_id)
    WITH s ORDER BY s.updated_at DESC, s.session_id LIMIT 50
    WITH s, s.sent_as IS NULL OR NOT s.sent_as IN {{text_of_others}} AS is_own, {{session_said_at}} AS said_at ORDER BY said_at DESC, s.session_id
    RETURN collect([s.session_id, CASE WHEN is_own THEN s.title END, s.summary,
                    CASE WHEN is_own THEN coalesce(s.topic_tags, []) ELSE [] END, coalesce(s.intent_sequence, []),
                    said_at.epochSeconds * 1000000 + said_at.microsecond]) AS sessions
  }
  CALL () {
    OPTIONAL MATCH (e:Entity {group_id: $group_id, is_user: true})
    WITH e LIMIT 1
    RETURN e.name AS user_entity_name
  }
  CALL () {
    OPTIONAL MATCH (m:Episodic) WHERE m.group_id = $group_id AND m.role = 'user' AND m.valid_at <= $now
      AND m.sent_as IS NULL AND {{is_of_user}}
    WITH m ORDER BY m.group_id DESC, m.role DESC, m.valid_at DESC, m.position DESC LIMIT 50
    RETURN head(collect(m.speaker)) AS speaker
  }
  RETURN {profile: profile, contested: contested, session: session, statistics: statistics, messages: messages, items: items,
          preferences: preferences, patterns: patterns, sessions: sessions, intents: intents, user_entity_name: user_entity_name, speaker: speaker} AS found
}
RETURN collect([write_version, found]) AS found

// name: list_memories_as_of(group_ids, scopes, domain, limit, {{as_of_params}})
// Fetch the facts of some scopes and of a domain, or of all, as of two times, the most important first.
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
WHERE {{as_of_filter}} AND {{is_statement}}
  AND ($scopes IS NULL OR r.scope IN $scopes) AND ($domain IS NULL OR r.domain = $domain)
WITH r ORDER BY r.importance DESC, r.known_from DESC LIMIT $limit
RETURN collect({{memory_columns}}) AS found

// name: fetch_source_times(group_ids, ids)
// Fetch when messages were said, and when memories were last said or, without their messages, first known.
UNWIND $group_ids AS group_id
CALL (group_id) {
  MATCH (m:Episodic {group_id: group_id}) WHERE m.message_id IN $ids
  RETURN m.message_id AS id, m.valid_at AS at
  UNION
  UNWIND $ids AS memory_id
  MATCH ()-[r:RELATES_TO {group_id: group_id, memory_id: memory_id}]->()
  OPTIONAL MATCH (m:Episodic {group_id: group_id}) WHERE m.message_id IN coalesce(r.message_ids, [])
  RETURN memory_id AS id, coalesce(max(m.valid_at), min(r.first_created_at)) AS at
}
RETURN id, at

// name: list_latest_sessions(group_ids, until, limit)
// List the latest conversations of a user and of the spaces that are read, those that changed until a time.
UNWIND $group_ids AS group_id
CALL (group_id) {
  MATCH (s:Session) WHERE s.group_id = group_id AND s.updated_at <= $until AND s.kind = 'conversation'
  RETURN s ORDER BY s.updated_at DESC, s.session_id LIMIT $limit
}
RETURN s.group_id AS group_id, s.session_id AS session_id ORDER BY s.updated_at DESC, session_id LIMIT $limit

// name: list_intents(group_id)
// List the learned intents, the best understood first.
{{learned_intents}}

// name: save_item(group_id, session_id, item_key, created, changed, permitted, now)
// Store what a caller states, linked to its session if it has one; no row when that session does not exist. An item that
// has not expired and whose source is not among the `permitted` ones stays as it is.
OPTIONAL MATCH (s:Session {group_id: $group_id, session_id: $session_id})
WITH s WHERE s IS NOT NULL OR $session_id = ''
MERGE (c:ContextItem {group_id: $group_id, session_id: $session_id, item_key: $item_key})
ON CREATE SET c += $created
WITH s, c, coalesce(c.source_kind, 'user') AS source_kind
WITH s, c, source_kind, source_kind IN $permitted OR coalesce(c.expires_at <= $now, true) AS is_permitted
FOREACH (_ IN CASE WHEN is_permitted THEN [1] ELSE [] END | SET c += $changed)
FOREACH (_ IN CASE WHEN s IS NULL THEN [] ELSE [1] END | MERGE (s)-[:HAS_CONTEXT]->(c))
RETURN {{item_columns}} AS item, source_kind, is_permitted

// name: delete_item(group_id, id)
// Delete a context item and return its source; no row for an unknown one.
MATCH (c:ContextItem) WHERE c.group_id = $group_id AND c.id = $id
WITH c, coalesce(c.source_kind, 'user') AS source_kind
DETACH DELETE c
RETURN source_kind

// name: load_surroundings(group_id, group_ids, wanted, weights, limit, updated_until, {{as_of_params}})
// Fetch which messages may be quoted, when others were said, and the other sessions that are relevant to a question: those
// that its hits come from, and those whose description shares its words.
// Messages are looked up one by one: for a list of ids the planner may read all messages of the user.
{{as_of_params}}
CALL (valid_at, known_at) {
  UNWIND $group_ids AS group_id
  UNWIND $wanted.message_ids AS message_id
  MATCH (m:Episodic {group_id: group_id, message_id: message_id}) WHERE {{is_quotable}}
  RETURN collect({{message_key}}) AS quotable
}
CALL () {
  UNWIND $group_ids AS group_id
  UNWIND $wanted.dated_ids AS message_id
  MATCH (m:Episodic {group_id: group_id, message_id: message_id})
  RETURN collect([{{message_key}}, m.valid_at.epochSeconds * 1000000 + m.valid_at.microsecond]) AS dated
}
CALL (valid_at, known_at) {
  MATCH (s:Session) WHERE s.group_id = $group_id AND s.kind = 'conversation' AND s.updated_at <= $updated_until
    AND ($wanted.excluded_session_id IS NULL OR s.session_id <> $wanted.excluded_session_id)
  WITH valid_at, known_at, s, ' ' + toLower(coalesce(s.title, '') + ' ' + coalesce(s.summary, '') + ' ' +
    reduce(all = '', tag IN coalesce(s.topic_tags, []) + coalesce(s.intent_sequence, []) | all + ' ' + replace(replace(tag, '_', ' '), '-', ' '))) AS text
  WITH valid_at, known_at, s, coalesce($weights[s.session_id], 0.0) +
    CASE WHEN size($wanted.words) = 0 THEN 0.0 ELSE toFloat(size([word IN $wanted.words WHERE text CONTAINS ' ' + word])) / size($wanted.words) END AS score
  WHERE score > 0
  WITH valid_at, known_at, s, score ORDER BY score DESC, s.updated_at DESC, s.session_id LIMIT $limit
  RETURN collect([s {.session_id, title: CASE WHEN s.sent_as IN {{text_of_others}} THEN null ELSE s.title END, .summary, .message_count, topic_tags: CASE WHEN s.sent_as IN {{text_of_others}} THEN [] ELSE coalesce(s.topic_tags, []) END}, score, [at IN [
         head(COLLECT {
           MATCH (m:Episodic {group_id: $group_id, session_id: s.session_id}) WHERE m.position >= 0
           RETURN m.valid_at ORDER BY m.valid_at LIMIT 1
         }),
         head(COLLECT {
           MATCH (m:Episodic {group_id: $group_id, session_id: s.session_id}) WHERE m.position >= 0
           RETURN m.valid_at ORDER BY m.valid_at DESC LIMIT 1
         }), s.created_at, s.updated_at] | at.epochSeconds * 1000000 + at.microsecond],
         COLLECT {
           MATCH (m:Episodic {group_id: $group_id, session_id: s.session_id}) WHERE m.position >= 0 AND s.summary IS NULL
           WITH m ORDER BY m.group_id, m.session_id, m.position
           WHERE {{is_of_user}} AND {{is_quotable}}
           RETURN left(m.content, 400) LIMIT 4
         }]) AS sessions
}
RETURN [quotable, dated, sessions] AS found

// name: list_tags_of_messages(group_ids, message_ids)
// Fetch the tags of each version of the memories that were taken from messages; a message without a memory has no row.
UNWIND $group_ids AS group_id
UNWIND $message_ids AS message_id
MATCH (m:Episodic {group_id: group_id, message_id: message_id})
UNWIND m.entity_edges AS uuid
MATCH ()-[r:RELATES_TO {uuid: uuid}]->() WHERE r.group_id = group_id
RETURN {{message_key}} AS message, collect(DISTINCT coalesce(r.tags, [])) AS tags

// name: find_ticket_sessions(group_id, marked, fields, limit)
// Find the sessions about tickets, the latest first: by a field of their metadata, or by "#id" in their title or summary.
MATCH (s:Session) WHERE s.group_id = $group_id AND s.kind = 'conversation'
WITH s, toLower(s.metadata) AS metadata, toLower(coalesce(s.title, '') + ' ' + coalesce(s.summary, '')) AS text
WHERE any(field IN $fields WHERE metadata CONTAINS field + ',' OR metadata CONTAINS field + '}')
  OR any(id IN $marked WHERE text =~ ('(?s).*' + id + '(?![\\w-]).*'))
RETURN s.session_id AS session_id ORDER BY s.updated_at DESC, s.session_id LIMIT $limit

// name: list_active_items(group_id, session_id, now)
// List the context items that have not expired, the latest first.
{{active_items}}

// name: upsert_items(group_id, rows)
// Store what messages mention, linked to session and message; a repeated mention expires later, unless its source may not
// change the item.
UNWIND $rows AS row
MATCH (m:Episodic {group_id: $group_id, message_id: row.message_id})
MATCH (s:Session {group_id: $group_id, session_id: row.session_id})
MERGE (c:ContextItem {group_id: $group_id, session_id: row.session_id, item_key: row.item_key})
ON CREATE SET c += row.properties
FOREACH (_ IN CASE WHEN coalesce(c.source_kind, 'user') IN row.permitted THEN [1] ELSE [] END |
  SET c.source_kind = row.properties.source_kind,
      c.expires_at = CASE WHEN c.expires_at < row.properties.expires_at THEN row.properties.expires_at ELSE c.expires_at END)
MERGE (s)-[:HAS_CONTEXT]->(c)
MERGE (c)-[:MENTIONED_IN]->(m)

// name: delete_expired_items(group_id, now)
// Delete the context items that have expired.
MATCH (c:ContextItem) WHERE c.group_id = $group_id AND c.expires_at <= $now
DETACH DELETE c
RETURN count(*) AS deleted

// name: list_preferences(group_id)
// List the learned preferences, the most confident first.
{{learned_preferences}}

// name: upsert_preferences(group_id, rows)
// Write learned preferences, linked to the user and to the messages they were learned from.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MERGE (p:LearnedPreference {group_id: $group_id, preference_type: row.preference_type, preference_key: row.preference_key})
SET p += row.properties
MERGE (u)-[:LIKES]->(p)
WITH p, row
MATCH (m:Episodic {group_id: $group_id, message_id: row.message_id})
MERGE (p)-[:LEARNED_FROM]->(m)

// name: delete_preferences(group_id, ids)
// Delete learned preferences.
MATCH (p:LearnedPreference) WHERE p.group_id = $group_id AND p.id IN $ids
DETACH DELETE p

// name: list_patterns(group_id)
// List the behaviour patterns that the user shows now, the most confident first.
{{active_patterns}}

// name: list_user_messages(group_id, since, limit, worst_score)
// Fetch the messages of a user since a time, the newest first, with the plans that were extracted from them and whether they were answered badly.
MATCH (m:Episodic) WHERE m.group_id = $group_id AND m.role = 'user' AND m.valid_at >= $since
WITH m ORDER BY m.group_id DESC, m.role DESC, m.valid_at DESC, m.position DESC LIMIT $limit
WHERE {{is_of_user}}
RETURN m.message_id AS message_id, m.valid_at AS at, m.utc_offset_minutes AS offset, m.intent AS intent,
       m.entities AS entities, coalesce(m.sent_as, 'user') AS source_kind,
       coalesce(m.feedback_score <= $worst_score, false) OR EXISTS {
         MATCH (reply:Episodic {group_id: m.group_id, session_id: m.session_id, position: m.position + 1})
         WHERE reply.role = 'assistant' AND reply.feedback_score <= $worst_score
       } AS answered_badly,
       COLLECT {
         UNWIND m.entity_edges AS uuid
         MATCH ()-[r:RELATES_TO {uuid: uuid}]->() WHERE r.type = 'plan' AND r.group_id = $group_id
         RETURN DISTINCT r.fact
       } AS plans

// name: upsert_patterns(group_id, rows, now)
// Write the detected patterns, linked to their evidence, and deactivate those not detected.
MATCH (u:User {group_id: $group_id})
CALL () {
  MATCH (p:BehaviorPattern) WHERE p.group_id = $group_id AND p.is_active
    AND NOT any(row IN $rows WHERE row.pattern_type = p.pattern_type AND row.pattern_key = p.pattern_key)
  SET p.is_active = false
}
CALL (u) {
  UNWIND $rows AS row
  MERGE (p:BehaviorPattern {group_id: $group_id, pattern_type: row.pattern_type, pattern_key: row.pattern_key})
  ON CREATE SET p.id = row.id, p.first_detected = $now
  SET p += row.properties, p.is_active = true, p.last_detected = $now
  MERGE (u)-[:SHOWS]->(p)
  WITH p, row
  CALL (p) {
    MATCH (p)-[old:SEEN_IN]->() DELETE old
  }
  UNWIND row.evidence AS message_id
  MATCH (m:Episodic {group_id: $group_id, message_id: message_id})
  MERGE (p)-[:SEEN_IN]->(m)
}
RETURN count(*) AS written

// name: delete_goal_patterns(group_id, keys)
// Delete the goal patterns of some keys, active or not.
MATCH (p:BehaviorPattern {group_id: $group_id, pattern_type: 'goal_focus'}) WHERE p.pattern_key IN $keys
DETACH DELETE p

// name: fetch_interaction(group_id, message_id)
// Fetch a rated message with the question before it and the reply after it in its session.
MATCH (m:Episodic {group_id: $group_id, message_id: $message_id})
RETURN m {.*, content_embedding: null, next_vector: null} AS rated, m.learned_from AS learned_from,
       head(COLLECT {
         MATCH (q:Episodic {group_id: $group_id, session_id: m.session_id})
         WHERE q.position < m.position AND q.role = 'user'
         RETURN q {.*, content_embedding: null, next_vector: null} ORDER BY q.position DESC LIMIT 1
       }) AS question,
       head(COLLECT {
         MATCH (a:Episodic {group_id: $group_id, session_id: m.session_id})
         WHERE a.position > m.position AND a.role = 'assistant'
         RETURN a {.*, content_embedding: null, next_vector: null} ORDER BY a.position LIMIT 1
       }) AS reply

// name: get_intent(group_id, intent)
// Fetch the confidence with which an intent of a user is understood.
MATCH (i:LearnedIntent {group_id: $group_id, intent: $intent})
RETURN i.confidence_score AS confidence

// name: upsert_intent(group_id, intent, id, confidence, sql, positive, negative, message_id, now)
// Write the confidence of an intent, unless null, and the latest ten database queries that answered it well, linked to the
// rated message; `positive` and `negative` are by how many its well and badly rated messages change.
MATCH (u:User {group_id: $group_id})
MERGE (i:LearnedIntent {group_id: $group_id, intent: $intent})
ON CREATE SET i.id = $id, i.name = $intent, i.created_at = $now, i.positive = 0, i.negative = 0
SET i.confidence_score = coalesce($confidence, i.confidence_score), i.updated_at = $now,
    i.positive = i.positive + $positive,
    i.negative = i.negative + $negative,
    i.successful_queries = CASE WHEN $sql IS NULL OR $sql IN coalesce(i.successful_queries, []) THEN i.successful_queries
                                ELSE ($sql + coalesce(i.successful_queries, []))[..10] END
MERGE (u)-[:ASKS]->(i)
WITH i
MATCH (m:Episodic {group_id: $group_id, message_id: $message_id})
MERGE (i)-[:LEARNED_FROM]->(m)

// name: save_feedback(group_id, message_id, score, text, issues, confidence, learned_from, rating_source_kind)
// Store the feedback of a source on a message, what it complains about, its new confidence, and the feedback that was learned from.
MATCH (u:User {group_id: $group_id})
MATCH (m:Episodic {group_id: $group_id, message_id: $message_id})
SET m.revision = u.revision, m.feedback_score = $score, m.feedback_text = $text, m.feedback_issues = nullIf($issues, []), m.confidence = $confidence, m.learned_from = $learned_from, m.rating_source_kind = $rating_source_kind
