// Consolidation: what discovery, analysis and the guards read, and what a run writes.

// name: fetch_entities(group_id, ids)
// Fetch entities by id.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
RETURN {{entity_node}} AS entity

// name: find_entities_sharing_words(group_id, words)
// Find entities whose names contain one of some words.
MATCH (e:Entity {group_id: $group_id}) WHERE any(word IN $words WHERE e.name_key CONTAINS word)
RETURN {{entity_node}} AS entity LIMIT 500

// name: fetch_entity_facts(group_id, entity_id, with_profiles)
// Fetch every version of the facts at an entity's edges and of those that mention it, with or without its profiles.
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id = $group_id
{{facts_of_entity}}
WITH r WHERE r.group_id = $group_id AND ($with_profiles OR {{is_statement}})
RETURN {{fact_version}}

// name: find_mentioning_messages(group_id, entity_id)
// Find the messages that mention an entity.
MATCH (m:Episodic)-[:MENTIONS]->(:Entity {uuid: $entity_id}) WHERE m.group_id = $group_id
RETURN DISTINCT m.uuid AS id

// name: list_other_relationships(entity_id)
// List the types of relationships of an entity that graphmem does not know.
MATCH (:Entity {uuid: $entity_id})-[r]-() WHERE NOT r:RELATES_TO|MENTIONS|REFERS_TO|ALIAS_OF
RETURN DISTINCT type(r) AS type

// name: count_current_facts(group_id, now)
// Count the current memories of a user.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND r.valid_from <= $now AND r.valid_to > $now AND {{is_statement}}
RETURN count(r) AS current

// name: reattach_facts(group_id, rows)
// Re-attach fact edges to other entities; they keep their vectors and every property that is not set.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH ()-[old:RELATES_TO {uuid: row.id}]->() WHERE old.group_id = $group_id
MATCH (s:Entity {uuid: row.source})
MATCH (o:Entity {uuid: row.target})
WITH u, row, old, s, o, properties(old) AS kept
// A deleted edge keeps its unique keys until the transaction ends if it was changed before: clear them first.
SET old = {}
DELETE old
CREATE (s)-[r:RELATES_TO]->(o)
SET r = kept, r += row.properties, r.revision = u.revision

// name: reattach_mentions(group_id, keep_id, merge_id)
// Replace the mentions of one entity by mentions of another.
MATCH (m:Episodic)-[old:MENTIONS]->(:Entity {uuid: $merge_id}) WHERE m.group_id = $group_id
MATCH (keep:Entity {uuid: $keep_id})
WITH m, old, keep, properties(old) AS kept
DELETE old
MERGE (m)-[r:MENTIONS]->(keep)
ON CREATE SET r = kept

// name: mark_consolidated(group_id, memory_ids, run_id, now)
// Mark memories as considered by a consolidation run.
UNWIND $memory_ids AS id
MATCH ()-[r:RELATES_TO {memory_id: id}]->()
WHERE r.group_id = $group_id AND r.expired_at IS NULL AND r.consolidated_at IS NULL
SET r.consolidated_at = $now, r.consolidated_by = $run_id

// name: unmark_consolidated(group_id, run_id)
// Remove the marks that a run set on memories.
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.consolidated_by = $run_id
  REMOVE r.consolidated_at, r.consolidated_by
}
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.compressed_by = $run_id
  REMOVE r.compressed_at, r.compressed_by
}

// name: fetch_discovery_candidates(group_id, now)
// Fetch every current memory that consolidation may change, with its vector.
MATCH (s)-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND r.valid_from <= $now AND r.valid_to > $now
  AND NOT r.immutable AND r.scope <> 'global' AND r.fact_embedding IS NOT NULL AND {{is_statement}}
RETURN r.memory_id AS memory_id, r.fact AS content, s.uuid AS subject_id, r.name AS predicate, r.scope AS scope, r.domain AS domain, {{entity_ids}} AS entity_ids,
       size(coalesce(r.associations, [])) AS associations, r.first_created_at AS created_at, r.access_count AS access_count,
       r.consolidated_at IS NULL AS is_new, r.compressed_at IS NOT NULL AS considered_for_compression, r.fact_embedding AS vector

// name: fetch_entity_names(group_id)
// Fetch the names of every entity of a user.
MATCH (e:Entity {group_id: $group_id})
RETURN e.uuid AS id, e.name AS name, coalesce(e.aliases, []) AS aliases, e.type AS type,
       coalesce(e.is_user, false) AS is_user

// name: find_entities_near_names(group_id, names)
// Find the entities whose names share words with those of some entities or have similar vectors, with their similarity.
CYPHER 25
{{await_fulltext}}
UNWIND $names AS name
MATCH (one:Entity {uuid: name.id}) WHERE one.group_id = $group_id
CALL (name, one) {
  WITH one WHERE one.name_embedding IS NOT NULL
  MATCH (e:Entity)
  SEARCH e IN (VECTOR INDEX graphmem_entity_embedding FOR one.name_embedding WHERE e.group_id = $group_id LIMIT 10) SCORE AS score
  RETURN e
  UNION
  CALL db.index.fulltext.queryNodes('node_name_and_summary', name.words, {limit: 20}) YIELD node AS e
  RETURN e
}
WITH DISTINCT one, e WHERE e.group_id = $group_id AND e <> one
RETURN one.uuid AS id, e.uuid AS other,
       CASE WHEN one.name_embedding IS NULL OR e.name_embedding IS NULL THEN 0.0
            ELSE 2 * vector.similarity.cosine(one.name_embedding, e.name_embedding) - 1 END AS similarity
ORDER BY id, other

// name: list_users_due(tenant, now, old_before, access_threshold)
// List the users with memories that no run has considered and others beside them, or that became old and rarely read since.
MATCH (u:User) WHERE ($tenant IS NULL OR u.tenant = $tenant) AND u.user_id <> ''
  AND EXISTS {
    MATCH ()-[r:RELATES_TO {group_id: u.group_id}]->()
    WHERE r.expired_at IS NULL AND r.scope <> 'global' AND NOT r.immutable AND r.fact_embedding IS NOT NULL
      AND r.valid_from <= $now AND r.valid_to > $now AND {{is_statement}}
      AND (r.consolidated_at IS NULL AND EXISTS {
          MATCH ()-[other:RELATES_TO {group_id: u.group_id}]->()
          WHERE other.expired_at IS NULL AND other.scope <> 'global' AND NOT other.immutable
            AND other.fact_embedding IS NOT NULL AND other.valid_from <= $now AND other.valid_to > $now
            AND other.memory_id <> r.memory_id AND other.type <> 'profile'
        }
        OR r.compressed_at IS NULL AND r.first_created_at < $old_before AND r.access_count < $access_threshold)
  }
RETURN u.tenant AS tenant, u.user_id AS user_id ORDER BY tenant, user_id

// name: mark_considered_for_compression(group_id, memory_ids, run_id, now)
// Mark old memories as considered for compression.
UNWIND $memory_ids AS id
MATCH ()-[r:RELATES_TO {memory_id: id}]->()
WHERE r.group_id = $group_id AND r.expired_at IS NULL AND r.compressed_at IS NULL
SET r.compressed_at = $now, r.compressed_by = $run_id

// name: find_similar_fact_pairs(group_id, ids, min_similarity)
// Find pairs of memories of one subject, scope and domain whose vectors nearly agree and that are not associated.
UNWIND $ids AS id
MATCH (s)-[r:RELATES_TO {group_id: $group_id, memory_id: id}]->() WHERE r.expired_at IS NULL
WITH collect({fact: r, subject: s.uuid}) AS found
UNWIND range(0, size(found) - 2) AS i
UNWIND range(i + 1, size(found) - 1) AS j
WITH found[i] AS one, found[j] AS other
WHERE one.subject = other.subject AND one.fact.scope = other.fact.scope
  AND coalesce(one.fact.domain, '') = coalesce(other.fact.domain, '')
  AND NOT other.fact.memory_id IN coalesce(one.fact.associations, [])
  AND 2 * vector.similarity.cosine(one.fact.fact_embedding, other.fact.fact_embedding) - 1 >= $min_similarity
RETURN [one.fact.memory_id, other.fact.memory_id] AS ids, [one.fact.version, other.fact.version] AS versions

// name: list_due_profiles(group_id, now, min_facts, min_own, min_new, limit)
// List the entities of a user whose profile is due, those with the most facts first.
MATCH (e:Entity {group_id: $group_id})
{{due_profile}}
RETURN e.uuid AS id ORDER BY size(facts) DESC, id LIMIT $limit

// name: list_users_with_due_profiles(tenant, now, min_facts, min_own, min_new)
// List the users of whose entities a profile is due.
MATCH (u:User) WHERE ($tenant IS NULL OR u.tenant = $tenant) AND u.user_id <> ''
CALL (u) {
  MATCH (e:Entity {group_id: u.group_id})
  {{due_profile}}
  RETURN e LIMIT 1
}
RETURN u.tenant AS tenant, u.user_id AS user_id ORDER BY tenant, user_id

// name: load_profile_facts(group_id, entity_id, now, limit)
// Fetch the facts that the profile of an entity is written from, the most important first, with that entity.
MATCH (e:Entity {uuid: $entity_id}) WHERE e.group_id = $group_id
{{facts_of_entity}}
WITH e, r WHERE {{can_be_profiled}}
WITH e, r ORDER BY r.importance DESC, r.known_from DESC, r.uuid LIMIT $limit
RETURN {{fact_version}}
