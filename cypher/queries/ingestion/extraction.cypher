// Extraction: names, related facts, interest candidates and the results already applied.

// name: list_known_names(group_id, mentioned, name_limit, interest_limit, domain_limit, intent_limit, known_at)
// List the user's entity, those with one of the names that are `mentioned`, and those with the most facts, each with what
// says who it is; the interests that were mentioned too rarely so far; the domains with the most facts; and the intents
// of the latest sessions.
CALL () {
  MATCH (e:Entity {group_id: $group_id})
  WITH e, COUNT { (e)-[:RELATES_TO]-() } AS facts, any(key IN coalesce(e.alias_keys, []) + e.name_key WHERE key IN $mentioned) AS is_mentioned
  ORDER BY coalesce(e.is_user, false) DESC, is_mentioned DESC, facts DESC, e.name_key LIMIT $name_limit
  RETURN collect(e {.name, .type, .is_user, aliases: coalesce(e.aliases, []), relation: {{relation_of_person}}}) AS entities
}
CALL () {
  MATCH (i:InterestCandidate {group_id: $group_id})
  WITH i.name AS name ORDER BY name LIMIT $interest_limit
  RETURN collect(name) AS interests
}
CALL () {
  MATCH ()-[r:RELATES_TO]->()
  WHERE r.group_id = $group_id AND r.scope = 'domain' AND r.known_to > $known_at AND r.importance >= 0
    AND r.domain IS NOT NULL
  WITH r.domain AS domain, count(*) AS facts ORDER BY facts DESC, domain LIMIT $domain_limit
  RETURN collect(domain) AS domains
}
CALL () {
  MATCH (s:Session) WHERE s.group_id = $group_id AND s.updated_at <= $known_at
  WITH s ORDER BY s.updated_at DESC, s.session_id LIMIT 20
  UNWIND s.intent_sequence AS intent
  WITH intent, max(s.updated_at) AS used, count(*) AS times ORDER BY used DESC, times DESC, intent LIMIT $intent_limit
  WITH intent ORDER BY intent
  RETURN collect(intent) AS intents
}
RETURN [entities, interests, domains, intents] AS known

// name: find_entities_by_keys(group_ids, keys)
// Find entities by the keys of their names or aliases, with the sources of aliases that are not the user's.
{{entities_with_keys}}
RETURN collect([e.uuid, e.name_key,
  coalesce(e.alias_keys, []), e.detail_sources,
  coalesce(e.is_user, false)]) AS found

// name: find_similar_entities(group_id, names)
// Find entities whose names share words with new names or have similar vectors, with the sources of their aliases and the
// cosine similarity.
CYPHER 25
{{await_fulltext}}
UNWIND $names AS name
CALL (name) {
  MATCH (e:Entity)
  SEARCH e IN (VECTOR INDEX graphmem_entity_embedding FOR name.vector WHERE e.group_id = $group_id LIMIT 10) SCORE AS score
  RETURN e
  UNION
  CALL db.index.fulltext.queryNodes('node_name_and_summary', name.words, {limit: 20}) YIELD node AS e
  RETURN e
}
WITH DISTINCT name, e WHERE e.group_id = $group_id AND NOT coalesce(e.is_user, false)
WITH name, e ORDER BY name.key, e.name_key
RETURN collect([name.key, {id: e.uuid, name: e.name, type: e.type, aliases: coalesce(e.aliases, []), relation: {{relation_of_person}}},
                {aliases: e.aliases, alias_keys: e.alias_keys, detail_sources: e.detail_sources},
                CASE WHEN e.name_embedding IS NULL THEN 0.0
                     ELSE 2 * vector.similarity.cosine(e.name_embedding, name.vector) - 1 END]) AS found

// name: find_related_facts(group_id, vectors, words, entity_ids, pairs, hashes, user_id, pending_types, ends_after, known_at, limit)
// Find believed facts related to new statements, with the cosine similarity to each: by meaning, by words, by entity, by
// subject and predicate, by content; and what the user still has to do. Facts that ended before `ends_after` are left out
// unless their content is the same.
CYPHER 25
CALL () {
  UNWIND $vectors AS vector
  CALL (vector) {
    MATCH ()-[r:RELATES_TO]->()
    SEARCH r IN (VECTOR INDEX graphmem_fact_embedding FOR vector
      WHERE r.group_id = $group_id AND r.valid_to > $ends_after AND r.known_to > $known_at LIMIT $limit) SCORE AS score
    RETURN r
  }
  RETURN r
  UNION
  {{await_fulltext}}
  CALL db.index.fulltext.queryRelationships('graphmem_fact_words', $words, {limit: $limit}) YIELD relationship AS r
  RETURN r
  UNION
  UNWIND $entity_ids AS id
  CALL (id) {
    MATCH (:Entity {uuid: id})-[r:RELATES_TO]-() WHERE r.expired_at IS NULL
    RETURN r ORDER BY r.known_from DESC LIMIT $limit
  }
  RETURN r
  UNION
  UNWIND $pairs AS pair
  MATCH (:Entity {uuid: pair[0]})-[r:RELATES_TO {name: pair[1]}]->() RETURN r
  UNION
  UNWIND $hashes AS hash
  MATCH ()-[r:RELATES_TO {group_id: $group_id, content_hash: hash}]->() RETURN r
  UNION
  CALL () {
    MATCH (:Entity {uuid: $user_id})-[r:RELATES_TO]->() WHERE r.type IN $pending_types AND r.expired_at IS NULL
    RETURN r ORDER BY r.known_from DESC LIMIT $limit
  }
  RETURN r
}
WITH DISTINCT r
WHERE r.group_id = $group_id AND r.expired_at IS NULL AND r.valid_from < r.valid_to AND {{is_statement}}
  AND (r.valid_to > $ends_after OR r.content_hash IN $hashes)
WITH r, r.fact_embedding AS embedding
RETURN {{fact_version}}, [vector IN $vectors | 2 * vector.similarity.cosine(embedding, vector) - 1] AS similarities

// name: record_interest(group_id, key, topic, message_ids, now)
// Add messages to an interest candidate, creating it if needed, and return all its messages.
MERGE (i:InterestCandidate {group_id: $group_id, key: $key})
ON CREATE SET i.uuid = randomUUID(), i.name = $topic, i.created_at = $now
SET i.message_ids = coalesce(i.message_ids, []) + [id IN $message_ids WHERE NOT id IN coalesce(i.message_ids, [])]
RETURN i.message_ids AS message_ids

// name: delete_interest(group_id, key)
// Delete an interest candidate that became a memory.
MATCH (i:InterestCandidate {group_id: $group_id, key: $key}) DELETE i

// name: append_transcript(group_id, session_id, entries, now)
// Add what was said in an extraction to its session.
MATCH (s:Session {group_id: $group_id, session_id: $session_id})
SET s.transcript = coalesce(s.transcript, []) + $entries, s.message_count = s.message_count + size($entries),
    s.updated_at = $now

// name: get_extraction(group_id, extraction_id)
// Fetch the actions of a part of a job, if it was applied.
MATCH (x:Extraction {group_id: $group_id, extraction_id: $extraction_id})
RETURN x.actions AS actions

// name: set_turns(group_id, session_id, turns)
// Store what messages are about where their sender did not say; the session lists its latest 200 intents.
MATCH (u:User {group_id: $group_id})
UNWIND $turns AS turn
MATCH (m:Episodic {group_id: $group_id, message_id: turn.message_id})
WITH u, m, turn, m.intent IS NULL AND turn.intent IS NOT NULL AS is_new
SET m.revision = u.revision, m.intent = coalesce(m.intent, turn.intent),
    m.entities = CASE coalesce(m.entities, '{}') WHEN '{}' THEN turn.entities ELSE m.entities END
WITH m.position AS position, turn, is_new ORDER BY position
WITH collect(CASE WHEN is_new THEN turn.intent END) AS intents
MATCH (s:Session {group_id: $group_id, session_id: $session_id})
SET s.intent_sequence = nullIf((coalesce(s.intent_sequence, []) + intents)[-200..], [])

// name: record_extraction(group_id, extraction_id, actions, links, message_ids, session_id, tags, at)
// Record that a part of a job was applied: its actions, the messages it read and the tags of the session.
CREATE (x:Extraction {group_id: $group_id, extraction_id: $extraction_id})
SET x.uuid = randomUUID(), x.actions = $actions, x.links = $links, x.created_at = $at
WITH x
CALL () {
  MATCH (u:User {group_id: $group_id})
  MATCH (m:Episodic {group_id: $group_id}) WHERE m.message_id IN $message_ids
  SET m.extracted_at = $at, m.revision = u.revision
  REMOVE m.pending_job, m.pending_store, m.pending_since
}
CALL () {
  MATCH (s:Session {group_id: $group_id, session_id: $session_id})
  SET s.topic_tags = {{added_topic_tags}}
}
