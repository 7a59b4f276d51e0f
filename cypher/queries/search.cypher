// Recall: each channel returns light rows, best first; what wins is fetched whole afterwards.
// Both time axes and the user are filtered before anything is cut off.

// name: find_facts_by_vector(group_ids, vector, ann_limit, limit, valid_at, valid_after, known_at)
// Find facts by meaning: the first of the `ann_limit` nearest, which is how far the index looks around.
CYPHER 25
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
SEARCH r IN (
  VECTOR INDEX graphmem_fact_embedding FOR $vector
  WHERE r.group_id IN $group_ids AND r.valid_from <= valid_at AND r.valid_to >= valid_after
    AND r.known_from <= known_at AND r.known_to > known_at
  LIMIT $ann_limit
) SCORE AS score
WITH r, score ORDER BY score DESC LIMIT $limit
RETURN collect({{fact_candidate}}) AS found

// name: find_domain_facts_by_vector(group_ids, vector, ann_limit, limit, valid_at, valid_after, known_at, domain)
// Find facts of a domain by meaning: the first of the `ann_limit` nearest.
CYPHER 25
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
SEARCH r IN (
  VECTOR INDEX graphmem_fact_embedding FOR $vector
  WHERE r.group_id IN $group_ids AND r.valid_from <= valid_at AND r.valid_to >= valid_after
    AND r.known_from <= known_at AND r.known_to > known_at AND r.domain = $domain
  LIMIT $ann_limit
) SCORE AS score
WITH r, score ORDER BY score DESC LIMIT $limit
RETURN collect({{fact_candidate}}) AS found

// name: scan_facts_by_vector(group_ids, vector, limit, valid_at, valid_after, known_at, types, tags_any, tags_all, tags_none, domain, scope, entity_ids, min_confidence, min_importance, created_after, created_before)
// Find facts by meaning where attributes are filtered, which the index cannot do: an exact scan of the user's facts.
MATCH ()-[r:RELATES_TO]->()
WHERE r.group_id IN $group_ids AND r.known_from <= $known_at AND r.known_to > $known_at
  AND r.valid_from <= $valid_at AND r.valid_to >= $valid_after AND {{attribute_filter}}
WITH r, vector.similarity.cosine(r.fact_embedding, $vector) AS score ORDER BY score DESC LIMIT $limit
RETURN collect({{fact_candidate}}) AS found

// name: find_facts_by_text(words, named_entity_ids, max_degree, limit, group_ids, valid_at, valid_after, known_at, types, tags_any, tags_all, tags_none, domain, scope, entity_ids, min_confidence, min_importance, created_after, created_before)
// Find facts by words (none or one query), those around the entities named, and how often the user was written to.
// The whole stream of hits is filtered, so that what is past cannot crowd out what holds. Around an entity are the facts
// at its edges and one step further; one with very many facts tells nothing apart.
{{await_fulltext}}
{{as_of_params}}
CALL (valid_at, valid_after, known_at) {
  UNWIND $words AS text
  CALL db.index.fulltext.queryRelationships('graphmem_fact_words', text) YIELD relationship AS r, score
  WHERE score > 0 AND {{as_of_filter}} AND {{attribute_filter}}
  WITH r, score LIMIT $limit
  RETURN collect({{fact_candidate}}) AS by_words
}
CALL (valid_at, valid_after, known_at) {
  UNWIND $named_entity_ids AS id
  MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
  WITH e, COUNT { (e)-[:RELATES_TO]-() } AS degree WHERE degree <= $max_degree
  CALL (e, degree, valid_at, valid_after, known_at) {
    MATCH (e)-[r:RELATES_TO]-() RETURN DISTINCT r, 1 / log(2.0 + degree) AS proximity
    UNION ALL
    MATCH (e)-[r:RELATES_TO]-(n:Entity) WHERE n <> e AND {{as_of_filter}}
    WITH DISTINCT e, degree, n LIMIT 15
    WITH e, degree, n, COUNT { (n)-[:RELATES_TO]-() } AS neighbor_degree WHERE neighbor_degree <= $max_degree
    MATCH (n)-[r:RELATES_TO]-(m) WHERE m <> e
    RETURN DISTINCT r, 0.5 / (log(2.0 + degree) * log(2.0 + neighbor_degree)) AS proximity
  }
  WITH r, sum(proximity) AS score WHERE {{as_of_filter}} AND {{attribute_filter}}
  WITH r, score ORDER BY score DESC, r.importance DESC, r.known_from DESC LIMIT $limit
  RETURN collect({{fact_candidate}}) AS near_entities
}
CALL () {
  MATCH (u:User) WHERE u.group_id IN $group_ids
  RETURN sum(u.write_version) AS write_version
}
RETURN [write_version, by_words, near_entities] AS found

// name: load_memories(uuids)
// Fetch the facts that won, with the entities they name; times in microseconds since 1970.
UNWIND $uuids AS uuid
MATCH ()-[r:RELATES_TO {uuid: uuid}]->()
RETURN collect({{memory_columns}}) AS found

// name: find_messages_by_vector(group_ids, vector, ann_limit, limit)
// Find messages by meaning: the first of the `ann_limit` nearest.
CYPHER 25
MATCH (m:Episodic)
SEARCH m IN (
  VECTOR INDEX graphmem_message_embedding FOR $vector WHERE m.group_id IN $group_ids LIMIT $ann_limit
) SCORE AS score
WITH m, score ORDER BY score DESC LIMIT $limit
RETURN collect([m.message_id, score]) AS found

// name: scan_messages_by_vector(group_ids, vector, limit, known_at)
// Find messages by meaning in an exact scan, for what was known at an earlier time.
MATCH (m:Episodic) WHERE m.group_id IN $group_ids AND m.created_at <= $known_at AND m.content_embedding IS NOT NULL
WITH m, vector.similarity.cosine(m.content_embedding, $vector) AS score ORDER BY score DESC LIMIT $limit
RETURN collect([m.message_id, score]) AS found

// name: find_messages_by_words(words, group_ids, limit, known_at)
// Find messages by words.
{{await_fulltext}}
CALL db.index.fulltext.queryNodes('graphmem_message_words', $words) YIELD node AS m, score
WHERE score > 0 AND m.group_id IN $group_ids AND m.created_at <= $known_at
WITH m, score LIMIT $limit
RETURN collect([m.message_id, score]) AS found

// name: compute_fact_similarities(uuids, vectors)
// Compare facts with some vectors, exactly.
UNWIND $uuids AS uuid
MATCH ()-[r:RELATES_TO {uuid: uuid}]->()
WITH uuid, r.fact_embedding AS embedding
RETURN collect([uuid, [vector IN $vectors | 2 * vector.similarity.cosine(embedding, vector) - 1]]) AS found

// name: load_message_contents(group_ids, message_ids, vector, known_at)
// Fetch what messages say and compare them with a vector, exactly; without a vector only what they say.
UNWIND $group_ids AS group_id
MATCH (m:Episodic {group_id: group_id}) WHERE m.message_id IN $message_ids AND m.created_at <= $known_at
RETURN collect([
  m.message_id, left(m.content, 2000), m.speaker,
  CASE WHEN $vector IS NULL OR m.content_embedding IS NULL THEN 0.0
       ELSE 2 * vector.similarity.cosine(m.content_embedding, $vector) - 1 END
]) AS found

// name: list_entity_names(group_ids, limit)
// List the names and aliases of a user's entities, for finding them in texts.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
WITH e LIMIT $limit
RETURN collect([e.uuid, e.name, e.type, e.aliases, coalesce(e.is_user, false)]) AS found

// name: find_entity_names(group_ids, words, limit)
// Find entities whose name or alias holds some words, where a user has too many to keep at hand.
{{await_fulltext}}
CALL db.index.fulltext.queryNodes('node_name_and_summary', $words) YIELD node AS e, score
WHERE e.group_id IN $group_ids
WITH e LIMIT $limit
RETURN collect([e.uuid, e.name, e.type, e.aliases, coalesce(e.is_user, false)]) AS found

// name: load_entities_with_facts(group_ids, entity_ids, valid_before, valid_after, limit)
// Fetch entities with what is believed about them and holds at some moment of a span, the most important first.
UNWIND $entity_ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
CALL (e) {
  CALL (e) {
    MATCH (e)-[r:RELATES_TO]-() RETURN r
    UNION
    WITH e UNWIND coalesce(e.mentioned_in, []) AS memory_id
    MATCH ()-[r:RELATES_TO {group_id: e.group_id, memory_id: memory_id}]->() RETURN r
  }
  WITH DISTINCT r WHERE r.expired_at IS NULL AND r.group_id IN $group_ids
    AND r.valid_from < $valid_before AND r.valid_to >= $valid_after
  WITH r ORDER BY r.importance DESC, r.known_from DESC LIMIT $limit
  RETURN collect({{memory_columns}}) AS facts
}
RETURN collect([
  e {.*, name_embedding: null, created_at: null, updated_at: null},
  [at IN [e.created_at, e.updated_at] | at.epochSeconds * 1000000 + at.microsecond],
  COUNT { (e)-[r:RELATES_TO]-() WHERE r.expired_at IS NULL },
  facts
]) AS found

// name: list_core_facts(group_ids, min_importance, valid_before, valid_after, limit)
// Fetch the profile facts of high importance that are believed and hold at some moment of a span.
MATCH ()-[r:RELATES_TO]->()
WHERE r.group_id IN $group_ids AND r.expired_at IS NULL AND r.scope = 'profile' AND r.importance >= $min_importance
  AND r.valid_from < $valid_before AND r.valid_to >= $valid_after
WITH r ORDER BY r.importance DESC, r.known_from DESC LIMIT $limit
RETURN collect({{memory_columns}}) AS found

// name: list_entity_edges(entity_ids, group_ids, limit, valid_at, valid_after, known_at)
// Fetch the facts at the edges of some entities, the most important first.
MATCH (e:Entity) WHERE e.uuid IN $entity_ids
MATCH (e)-[r:RELATES_TO]-() WHERE r.group_id IN $group_ids
  AND r.known_from <= $known_at AND r.known_to > $known_at
  AND r.valid_from <= $valid_at AND r.valid_to >= $valid_after
WITH DISTINCT r ORDER BY r.importance DESC, r.known_from DESC LIMIT $limit
RETURN collect({{memory_columns}}) AS found

// name: load_entities(group_ids, ids)
// Fetch entities by id, by name, with how many of their facts are believed.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
WITH e ORDER BY e.name_key, e.uuid
RETURN collect([
  e {.*, name_embedding: null, created_at: null, updated_at: null},
  [at IN [e.created_at, e.updated_at] | at.epochSeconds * 1000000 + at.microsecond],
  COUNT { (e)-[r:RELATES_TO]-() WHERE r.expired_at IS NULL }
]) AS found
