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

// name: find_edges(ways, max_degree, max_outgoing, max_incoming, seen, vector, limit, group_ids, {{as_of_params}}, {{readable_filter}}, {{matches_filters}})
// Find the facts by which entities are left, one step of a walk. `ways` has the id of each entity with the similarity of the way to
// it, `seen` the facts that the walk has. An entity with too many facts is not left.
{{as_of_params}}
UNWIND $ways AS way
MATCH (e:Entity {uuid: way[0]}) WHERE e.group_id IN $group_ids AND COUNT { (e)-[:RELATES_TO]-() } <= $max_degree
CALL (e) {
  WITH e WHERE COUNT { (e)-[:RELATES_TO]->() } <= $max_outgoing
  MATCH (e)-[r:RELATES_TO]->() RETURN r
  UNION
  WITH e WHERE COUNT { (e)<-[:RELATES_TO]-() } <= $max_incoming
  MATCH (e)<-[r:RELATES_TO]-() RETURN r
}
WITH valid_at, valid_after, known_at, e, r, way WHERE {{readable_filter}} AND NOT r.uuid IN $seen
WITH r, max(way[1]) AS way, collect(e.uuid) AS origins
WITH r, way, origins, {{matches_filters}} AS matches
ORDER BY way DESC, matches DESC, r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
RETURN collect([r.uuid, startNode(r).uuid, endNode(r).uuid, [n IN [startNode(r), endNode(r)] WHERE n.is_user | n.uuid], origins,
                matches, {{question_similarity}}, r.importance, r.known_from.epochSeconds * 1000000 + r.known_from.microsecond]) AS found

// name: load_candidates(group_ids, uuids)
// Fetch facts that were found around entities.
UNWIND $uuids AS uuid
MATCH ()-[r:RELATES_TO {uuid: uuid}]->() WHERE r.group_id IN $group_ids
WITH r, null AS score, null AS similarity
RETURN collect({{fact_candidate}}) AS found

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
RETURN collect({{named_entity}}) AS found

// name: find_entity_names(group_ids, words, limit)
// Find entities by full text over names and aliases.
{{await_fulltext}}
CALL db.index.fulltext.queryNodes('node_name_and_summary', $words) YIELD node AS e, score
WHERE e.group_id IN $group_ids
WITH e, score ORDER BY score DESC, e.uuid LIMIT $limit
RETURN collect({{named_entity}}) AS found

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
