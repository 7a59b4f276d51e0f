// Search: each channel returns light rows, best first; the winners are fetched in full afterwards.
// User and both time axes are filtered before any limit is applied.

// name: find_facts_by_vector(group_ids, vector, ann_limit, limit, {{as_of_params}})
// Find facts by meaning: the first `limit` of the `ann_limit` nearest ones in the index.
CYPHER 25
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
SEARCH r IN (
  VECTOR INDEX graphmem_fact_embedding FOR $vector
  WHERE {{as_of_filter}}
  LIMIT $ann_limit
) SCORE AS score
WITH r, score, 2 * score - 1 AS similarity WHERE {{is_statement}}
WITH r, score, similarity ORDER BY score DESC LIMIT $limit
RETURN collect({{fact_candidate}}) AS found

// name: find_domain_facts_by_vector(group_ids, vector, ann_limit, limit, {{as_of_params}}, domain)
// Find facts of a domain by meaning: the first `limit` of the `ann_limit` nearest ones in the index.
CYPHER 25
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
SEARCH r IN (
  VECTOR INDEX graphmem_fact_embedding FOR $vector
  WHERE {{as_of_filter}} AND r.domain = $domain
  LIMIT $ann_limit
) SCORE AS score
WITH r, score, 2 * score - 1 AS similarity WHERE {{is_statement}}
WITH r, score, similarity ORDER BY score DESC LIMIT $limit
RETURN collect({{fact_candidate}}) AS found

// name: scan_facts_by_vector(group_ids, vector, limit, {{as_of_params}}, {{readable_filter}}, {{matches_filters}})
// Find facts by meaning with filters that the index cannot apply: scan all facts of the user.
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
WHERE {{readable_filter}} AND {{matches_filters}}
WITH r, vector.similarity.cosine(r.fact_embedding, $vector) AS score ORDER BY score DESC LIMIT $limit
WITH r, score, 2 * score - 1 AS similarity
RETURN collect({{fact_candidate}}) AS found

// name: find_facts_by_text(words, limit, group_ids, {{as_of_params}}, {{readable_filter}}, {{matches_filters}})
// Find facts by full text. All hits are filtered before the limit, so that past facts cannot displace valid ones.
{{await_fulltext}}
{{as_of_params}}
CALL db.index.fulltext.queryRelationships('graphmem_fact_words', $words) YIELD relationship AS r, score
WHERE score > 0 AND {{readable_filter}} AND {{matches_filters}}
WITH r, score, null AS similarity ORDER BY score DESC, r.uuid LIMIT $limit
RETURN collect({{fact_candidate}}) AS found

// name: find_facts_around_entities(named_entity_ids, vector, max_degree, max_start, max_outgoing, max_incoming, max_followed, max_computed, limit, group_ids, {{as_of_params}}, {{readable_filter}}, {{matches_filters}})
// Find facts up to four steps around entities, the nearest to the question and its way first. The ways that are most similar to the question are followed: at the second step along outgoing facts and, from
// an entity that few facts lead to, along these; from the third on along outgoing facts only. Many facts lead to none of them
// in particular, so that more than `max_start` facts and the user's own entity are not followed.
{{as_of_params}}
OPTIONAL MATCH (e:Entity) WHERE e.uuid IN $named_entity_ids AND e.group_id IN $group_ids
  AND COUNT { (e)-[:RELATES_TO]-() } <= $max_degree
WITH valid_at, valid_after, known_at, collect(e) AS named
CALL (valid_at, valid_after, known_at, named) {
  UNWIND named AS e
  MATCH (e)-[r:RELATES_TO]-() WHERE {{readable_filter}}
  WITH DISTINCT named, r, {{matches_filters}} AS matches
  ORDER BY matches DESC, r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
  WITH named, r, {{question_similarity}} AS similarity
  RETURN collect([r, similarity, coalesce(similarity, 0.0),
                  head([n IN [startNode(r), endNode(r)] WHERE NOT n IN named AND NOT coalesce(n.is_user, false)])])
         AS first_steps
}
CALL (valid_at, valid_after, known_at, named, first_steps) {
  UNWIND CASE WHEN size(first_steps) <= $max_start THEN first_steps ELSE [] END AS step
  WITH valid_at, valid_after, known_at, named, step[3] AS n, max(step[2]) AS way WHERE n IS NOT NULL
  ORDER BY way DESC LIMIT $max_followed
  CALL (n) {
    WITH n WHERE COUNT { (n)-[:RELATES_TO]->() } <= $max_outgoing
    MATCH (n)-[r:RELATES_TO]->() RETURN r
    UNION
    WITH n WHERE COUNT { (n)<-[:RELATES_TO]-() } <= $max_incoming
    MATCH (n)<-[r:RELATES_TO]-() RETURN r
  }
  WITH valid_at, valid_after, known_at, named, n, r, way
  WHERE {{readable_filter}} AND NOT startNode(r) IN named AND NOT endNode(r) IN named
  WITH r, max(way) AS way, collect(DISTINCT n) AS from ORDER BY way DESC LIMIT $max_computed
  WITH r, way, from, {{question_similarity}} AS similarity
  RETURN collect([r, similarity, coalesce(similarity, -0.1) + 0.3 * way,
                  head([n IN [endNode(r), startNode(r)] WHERE NOT n IN from AND NOT coalesce(n.is_user, false)]), way])
         AS second_steps
}
CALL (valid_at, valid_after, known_at, first_steps, second_steps) {
  WITH valid_at, valid_after, known_at, second_steps,
       [step IN first_steps + second_steps | step[0]] AS seen, [step IN first_steps WHERE step[3] IS NOT NULL | step[3]] AS before
  UNWIND second_steps AS step
  WITH valid_at, valid_after, known_at, seen, before, step[3] AS n, max((step[2] + 0.7 * step[4]) / 2) AS way
  WHERE n IS NOT NULL AND NOT n IN before AND COUNT { (n)-[:RELATES_TO]->() } <= $max_outgoing
  WITH * ORDER BY way DESC LIMIT $max_followed
  MATCH (n)-[r:RELATES_TO]->() WHERE {{readable_filter}} AND NOT r IN seen
  WITH r, max(way) AS way ORDER BY way DESC LIMIT $max_computed
  WITH r, way, {{question_similarity}} AS similarity
  RETURN collect([r, similarity, coalesce(similarity, -0.2) + 0.6 * way,
                  head([n IN [endNode(r)] WHERE n <> startNode(r) AND NOT coalesce(n.is_user, false)]), way])
         AS third_steps
}
CALL (valid_at, valid_after, known_at, first_steps, second_steps, third_steps) {
  WITH valid_at, valid_after, known_at, third_steps,
       [step IN first_steps + second_steps + third_steps | step[0]] AS seen, [step IN first_steps + second_steps WHERE step[3] IS NOT NULL | step[3]] AS before
  UNWIND third_steps AS step
  WITH valid_at, valid_after, known_at, seen, before, step[3] AS n, max((step[2] + 0.7 * step[4]) / 2) AS way
  WHERE n IS NOT NULL AND NOT n IN before AND COUNT { (n)-[:RELATES_TO]->() } <= $max_outgoing
  WITH * ORDER BY way DESC LIMIT $max_followed
  MATCH (n)-[r:RELATES_TO]->() WHERE {{readable_filter}} AND NOT r IN seen
  WITH r, max(way) AS way ORDER BY way DESC LIMIT $max_computed
  WITH r, way, {{question_similarity}} AS similarity
  RETURN collect([r, similarity, coalesce(similarity, -0.2) + 0.6 * way,
                  head([n IN [endNode(r)] WHERE n <> startNode(r) AND NOT coalesce(n.is_user, false)]), way])
         AS fourth_steps
}
CALL (first_steps, second_steps, third_steps, fourth_steps) {
  UNWIND first_steps + second_steps + third_steps + fourth_steps AS step
  WITH step[0] AS r, step[1] AS similarity, step[2] AS score
  WHERE {{matches_filters}}
  WITH r, similarity, score ORDER BY score DESC, r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
  RETURN collect({{fact_candidate}}) AS found
}
RETURN found

// name: load_memories(group_ids, uuids)
// Fetch facts in full, with the entities they refer to.
UNWIND $uuids AS uuid
MATCH ()-[r:RELATES_TO {uuid: uuid}]->() WHERE r.group_id IN $group_ids
RETURN collect({{memory_columns}}) AS found

// name: find_messages_by_vector(group_ids, vector, ann_limit, limit)
// Find messages by meaning: the first `limit` of the `ann_limit` nearest ones in the index.
CYPHER 25
MATCH (m:Episodic)
SEARCH m IN (
  VECTOR INDEX graphmem_message_embedding FOR $vector WHERE m.group_id IN $group_ids LIMIT $ann_limit
) SCORE AS score
WITH m, score ORDER BY score DESC LIMIT $limit
RETURN collect([{{message_key}}, score]) AS found

// name: scan_messages_by_vector(group_ids, vector, limit, said_until, known_at)
// Find messages by meaning among those said and known at earlier times, which the index cannot filter: scan them all.
MATCH (m:Episodic) WHERE m.group_id IN $group_ids AND m.created_at <= $known_at AND m.valid_at <= $said_until
  AND m.content_embedding IS NOT NULL
WITH m, vector.similarity.cosine(m.content_embedding, $vector) AS score ORDER BY score DESC LIMIT $limit
RETURN collect([{{message_key}}, score]) AS found

// name: find_messages_by_words(words, group_ids, limit, said_until, known_at)
// Find messages by full text.
{{await_fulltext}}
CALL db.index.fulltext.queryNodes('graphmem_message_words', $words) YIELD node AS m, score
WHERE score > 0 AND m.group_id IN $group_ids AND m.created_at <= $known_at AND m.valid_at <= $said_until
WITH m, score ORDER BY score DESC, m.uuid LIMIT $limit
RETURN collect([{{message_key}}, score]) AS found

// name: load_message_contents(group_ids, message_ids, said_until, known_at)
// Fetch the text of messages, who said it, and where it is in its session; not of those of which something was caught.
UNWIND $group_ids AS group_id
MATCH (m:Episodic {group_id: group_id}) WHERE m.message_id IN $message_ids AND m.created_at <= $known_at AND m.valid_at <= $said_until
  AND m.caught IS NULL
RETURN collect([{{message_key}}, left(m.content, 2000), m.speaker, m.role, m.session_id, m.position]) AS found

// name: load_messages(group_ids, message_ids)
// Fetch messages of several groups by id, with their keys.
UNWIND $group_ids AS group_id
UNWIND $message_ids AS message_id
MATCH (m:Episodic {group_id: group_id, message_id: message_id})
RETURN collect([{{message_key}}, {{message_columns}}]) AS found

// name: list_entity_names(group_ids, limit)
// List the names and aliases of a user's entities.
MATCH (e:Entity) WHERE e.group_id IN $group_ids
WITH e LIMIT $limit
RETURN collect([e.uuid, e.name, e.type, coalesce(e.aliases, []), coalesce(e.is_user, false)]) AS found

// name: find_entity_names(group_ids, words, limit)
// Find entities by full text over names and aliases.
{{await_fulltext}}
CALL db.index.fulltext.queryNodes('node_name_and_summary', $words) YIELD node AS e, score
WHERE e.group_id IN $group_ids
WITH e, score ORDER BY score DESC, e.uuid LIMIT $limit
RETURN collect([e.uuid, e.name, e.type, coalesce(e.aliases, []), coalesce(e.is_user, false)]) AS found

// name: load_entities_with_facts(group_ids, named_entity_ids, limit, {{as_of_params}}, {{readable_filter}}, {{matches_filters}})
// Fetch entities with the facts about each that pass the filters, the most important first.
{{as_of_params}}
UNWIND $named_entity_ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
CALL (e, valid_at, valid_after, known_at) {
  {{facts_of_entity}}
  WITH * WHERE {{readable_filter}} AND {{matches_filters}}
  WITH r ORDER BY r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
  RETURN collect({{memory_columns}}) AS facts
}
RETURN collect([{{entity_columns}}, facts]) AS found

// name: list_profile_facts(group_ids, domain, valid_before, valid_after, limit)
// Fetch the believed facts of the profile and of a domain that are valid at some time of an interval, the most important first.
MATCH ()-[r:RELATES_TO]->()
WHERE r.group_id IN $group_ids AND r.expired_at IS NULL AND (r.scope IN ['profile', 'global'] OR r.domain = $domain) AND {{is_statement}}
  AND r.valid_from < $valid_before AND r.valid_to >= $valid_after
WITH r ORDER BY r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
RETURN collect({{memory_columns}}) AS found

// name: load_shown(group_ids, ids, message_ids)
// Fetch what retrievals have changed of the latest versions of memories, and when messages were said, by key.
CALL () {
  UNWIND $group_ids AS group_id
  UNWIND $ids AS id
  MATCH ()-[r:RELATES_TO {group_id: group_id, memory_id: id}]->() WHERE r.expired_at IS NULL
  RETURN collect({{retrieval_state}}) AS states
}
CALL () {
  UNWIND $group_ids AS group_id
  UNWIND $message_ids AS message_id
  MATCH (m:Episodic {group_id: group_id, message_id: message_id})
  RETURN collect([{{message_key}}, m.valid_at.epochSeconds * 1000000 + m.valid_at.microsecond]) AS said
}
RETURN [states, said] AS found

// name: list_entity_edges(entity_ids, group_ids, limit, {{as_of_params}})
// Fetch the facts at the edges of entities as of two times, the most important first.
{{as_of_params}}
MATCH (e:Entity) WHERE e.uuid IN $entity_ids
MATCH (e)-[r:RELATES_TO]-() WHERE {{as_of_filter}} AND {{is_statement}}
WITH DISTINCT r ORDER BY r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
RETURN collect({{memory_columns}}) AS found

// name: load_entities(group_ids, ids)
// Fetch entities by id, in the order of their names.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id IN $group_ids
WITH e ORDER BY e.name_key, e.uuid
RETURN collect([{{entity_columns}}]) AS found
