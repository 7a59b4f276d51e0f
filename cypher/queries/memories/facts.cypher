// Facts: the versions of memories, on RELATES_TO edges. Every query is limited to the groups it is given.

// name: set_last_write_time(group_id, at)
// Store the time of a user's latest write.
MATCH (u:User {group_id: $group_id}) SET u.last_write_at = $at

// name: fetch_for_write(group_id, tenant, keys)
// Fetch the believed versions that a write may change: same statement and what it contests, given id, same subject and
// predicate. Of a slot only if it has a single-valued fact: of a source that the tenant trusts the most by default, the
// rest is not asked, because no other source decides over it, unless the tenant has an order of its own. The hints keep
// a plan that was made for a small or empty database from reading all facts of a user for each hash.
CALL () {
  UNWIND $keys.hashes AS hash
  MATCH ()-[said:RELATES_TO {group_id: $group_id, content_hash: hash}]->()
  USING INDEX SEEK said:RELATES_TO(group_id, content_hash)
  WHERE said.expired_at IS NULL
  CALL (said) {
    RETURN said AS r
    UNION
    UNWIND said.contests AS id
    MATCH ()-[r:RELATES_TO {group_id: $group_id, memory_id: id}]->() USING INDEX SEEK r:RELATES_TO(group_id, memory_id)
    WHERE r.expired_at IS NULL
    RETURN r
  }
  RETURN r
  UNION
  UNWIND $keys.slots AS slot
  WITH slot WHERE slot[2] OR EXISTS { (:TenantTrust {tenant: $tenant}) }
  MATCH (s:Entity {uuid: slot[0]}) USING INDEX SEEK s:Entity(uuid)
  WHERE EXISTS {
    MATCH (s)-[one:RELATES_TO {name: slot[1]}]->() WHERE one.group_id = $group_id AND one.expired_at IS NULL AND one.single_valued
  }
  MATCH (s)-[r:RELATES_TO {name: slot[1]}]->()
  WHERE r.group_id = $group_id AND r.expired_at IS NULL
  RETURN r
  UNION
  UNWIND $keys.memory_ids AS id
  MATCH ()-[r:RELATES_TO {group_id: $group_id, memory_id: id}]->() USING INDEX SEEK r:RELATES_TO(group_id, memory_id)
  WHERE r.expired_at IS NULL
  RETURN r
  UNION
  UNWIND $keys.pairs AS pair
  MATCH (s:Entity {uuid: pair[0]})-[r:RELATES_TO {name: pair[1]}]->() USING INDEX SEEK s:Entity(uuid)
  WHERE r.group_id = $group_id AND r.expired_at IS NULL
  RETURN r
}
RETURN {{fact_version}}

// name: find_naming(group_id, words, names)
// Find the believed facts whose text holds one of some names in lower case, with the entities that they refer to already;
// `words` is the full-text query for the words of the names.
{{await_fulltext}}
CALL db.index.fulltext.queryRelationships('graphmem_fact_words', $words) YIELD relationship AS r
WHERE r.group_id = $group_id AND r.expired_at IS NULL AND r.status = 'active' AND {{is_statement}}
WITH r, toLower(r.fact) AS text
WHERE any(name IN $names WHERE text CONTAINS name)
RETURN r.memory_id AS memory_id, r.fact AS content,
       COLLECT { UNWIND {{entity_ids}} AS id MATCH (e:Entity {uuid: id}) RETURN {{entity_names}} } AS entities
ORDER BY r.known_from, r.memory_id

// name: find_comparable(group_id, entity_ids, vectors, dimension, now, most_compared, neighbours)
// Find the current facts about entities that new statements are compared with, with their vectors: all of them or, when the
// entities have more than `most_compared` versions, those near one of the vectors. While the model changes, those whose vectors
// are of another one are left out.
CYPHER 25
CALL () {
  UNWIND $entity_ids AS id
  MATCH (e:Entity {uuid: id})
  RETURN sum(COUNT { (e)-[:RELATES_TO]->() }) AS versions
}
CALL (versions) {
  WITH * WHERE versions <= $most_compared
  UNWIND $entity_ids AS id
  MATCH (:Entity {uuid: id})-[r:RELATES_TO]->()
  RETURN r
  UNION
  WITH * WHERE versions > $most_compared
  UNWIND $vectors AS vector
  CALL (vector) {
    MATCH ()-[r:RELATES_TO]->()
    SEARCH r IN (VECTOR INDEX graphmem_fact_embedding FOR vector
      WHERE r.group_id = $group_id AND r.valid_to > $now AND r.known_to > $now LIMIT $neighbours)
    RETURN r
  }
  RETURN r
}
WITH r WHERE r.group_id = $group_id AND r.valid_to > $now AND r.known_to > $now AND r.valid_from <= $now AND {{is_statement}}
WITH r, startNode(r).uuid AS subject_id, r.fact_embedding AS embedding
WHERE subject_id IN $entity_ids AND size(embedding) = $dimension
RETURN collect([r.memory_id, subject_id, endNode(r).uuid, r.name, r.content_hash,
  vector(embedding, size(embedding), FLOAT32)]) AS facts

// name: commit_write(group_id, rows, max_facts, now, at)
// Write the new entities, the changed and the new versions of a user, their links to messages, the references of some
// memories and the time of the write. A message lists its latest `max_facts` versions. A new version has its own vector or copies that of an earlier version. An entity name that is taken violates a constraint.
CALL () {
  MATCH (u:User {group_id: $group_id})
  UNWIND $rows.entities AS properties
  CREATE (e:Entity)
  SET e = properties, e:$(properties.type), e.revision = u.revision
  WITH e
  {{pack_entity_vector}}
}
CALL () {
  MATCH (u:User {group_id: $group_id})
  UNWIND $rows.changed AS row
  MATCH ()-[r:RELATES_TO {uuid: row.uuid}]->() WHERE r.group_id = $group_id
  SET r += row.properties, r.revision = u.revision
}
CALL () {
  MATCH (u:User {group_id: $group_id})
  UNWIND $rows.created AS row
  MATCH (s:Entity {uuid: row.subject_id})
  MATCH (o:Entity {uuid: row.object_id})
  OPTIONAL MATCH ()-[earlier:RELATES_TO {uuid: row.vector_source_uuid}]->()
  CREATE (s)-[r:RELATES_TO]->(o)
  SET r = row.properties, r.fact_embedding = coalesce(row.vector, earlier.fact_embedding), r.revision = u.revision
  WITH r
  {{pack_fact_vector}}
}
CALL () {
  UNWIND $rows.episodes AS row
  MATCH (m:Episodic {uuid: row.episode}) WHERE m.group_id = $group_id
  SET m.entity_edges = (m.entity_edges + [uuid IN row.facts WHERE NOT uuid IN m.entity_edges])[-$max_facts..]
  WITH m, row
  UNWIND row.entity_ids AS entity_id
  MATCH (e:Entity {uuid: entity_id})
  MERGE (m)-[mention:MENTIONS]->(e)
  ON CREATE SET mention.uuid = randomUUID(), mention.group_id = $group_id, mention.created_at = $now
}
CALL () {
  WITH $rows.referring AS referring
  {{rebuild_references}}
}
MATCH (u:User {group_id: $group_id}) SET u.last_write_at = $at

// name: rebuild_references(group_id, referring)
// Make the references of memories those of their versions.
WITH $referring AS referring
{{rebuild_references}}

// name: list_contested(group_id)
// Fetch the contested memories of a group, the latest first.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.status = 'contested' AND r.expired_at IS NULL
RETURN {{fact_version}}
ORDER BY r.known_from DESC, r.memory_id

// name: list_versions(group_ids, memory_id)
// Fetch every version of one memory, oldest first.
MATCH ()-[r:RELATES_TO {memory_id: $memory_id}]->() WHERE r.group_id IN $group_ids
RETURN {{fact_version}}
ORDER BY r.version

// name: fetch_latest(group_ids, memory_ids)
// Fetch the latest version of each memory, whether it is believed or not.
UNWIND $memory_ids AS id
UNWIND $group_ids AS group_id
CALL (id, group_id) {
  MATCH ()-[r:RELATES_TO {group_id: group_id, memory_id: id}]->()
  RETURN r ORDER BY r.version DESC LIMIT 1
}
RETURN {{fact_version}}

// name: list_page(group_ids, {{as_of_params}}, {{readable_filter}}, {{matches_filters}}, keyword, keyword_is_folded, folded_words, sort, direction, after_key, after_id, limit)
// List one page of memories as of two times, filtered by attributes, in a stable order. A statement contains a keyword
// as it is written, or its words once both are folded.
{{as_of_params}}
MATCH ()-[r:RELATES_TO]->()
WHERE {{readable_filter}} AND {{matches_filters}}
  AND ($keyword IS NULL OR toLower(r.fact) CONTAINS $keyword OR toLower(r.metadata) CONTAINS $keyword
    OR (r.folded_text IS NOT NULL OR NOT $keyword_is_folded) AND $folded_words <> []
      AND all(word IN $folded_words WHERE toLower(r.fact) CONTAINS word OR r.folded_text CONTAINS word))
WITH r, $direction * CASE $sort
    WHEN 'importance' THEN r.importance
    WHEN 'valid_at' THEN r.valid_from.epochSeconds * 1000000 + r.valid_from.microsecond
    ELSE r.known_from.epochSeconds * 1000000 + r.known_from.microsecond
  END AS key
WHERE $after_key IS NULL OR key > $after_key OR key = $after_key AND r.memory_id > $after_id
WITH r, key ORDER BY key, r.memory_id LIMIT $limit
RETURN {{fact_version}}, key

// name: reinforce(group_id, hits, strength_step, max_strength, confidence_step, max_confidence)
// Count retrievals: what decay has left of the strength, and the confidence, rise up to their maxima; the caller has
// locked the user. The confidence of an immutable memory stays what its writer stated.
// Times arrive as [seconds since 1970, microseconds].
MATCH (u:User {group_id: $group_id})
UNWIND $hits AS hit
MATCH ()-[r:RELATES_TO {group_id: $group_id, memory_id: hit.memory_id}]->() WHERE r.expired_at IS NULL
WITH u, r, hit, datetime({epochSeconds: hit.at[0], microsecond: hit.at[1]}) AS at
WITH u, r, hit, at, r.confidence + $confidence_step * hit.times AS confidence,
     (at.epochMillis - coalesce(r.last_accessed_at, r.first_created_at).epochMillis) / 86400000.0 AS idle_days
WITH u, r, hit, at, confidence, $strength_step * hit.times +
     r.strength * exp(-r.decay_rate * CASE WHEN idle_days > 0 THEN idle_days ELSE 0 END) AS strength
SET r.access_count = r.access_count + hit.times,
    r.strength = CASE WHEN strength > $max_strength THEN $max_strength ELSE strength END,
    r.confidence = CASE WHEN r.immutable OR r.confidence >= $max_confidence THEN r.confidence
                        WHEN confidence > $max_confidence THEN $max_confidence
                        ELSE confidence END,
    r.last_accessed_at = at, r.revision = u.revision

// name: erase_memory(group_ids, memory_id)
// Delete every version of one memory; return their ids and those of the entities that they referred to.
MATCH (s)-[r:RELATES_TO {memory_id: $memory_id}]->(o) WHERE r.group_id IN $group_ids
WITH collect(r) AS rows, collect(r.uuid) AS uuids,
     reduce(all = [], ids IN collect([s.uuid, o.uuid] + coalesce(r.entity_ids, [])) | all + ids) AS entity_ids
FOREACH (row IN rows | DELETE row)
RETURN size(uuids) AS erased, uuids, entity_ids

// name: erase_references(group_id, memory_id, uuids)
// Remove the references of an erased memory, and its id and those of its versions from facts and messages.
CALL () {
  MATCH (u:User {group_id: $group_id})
  MATCH ()-[r:RELATES_TO]->()
  WHERE r.group_id = $group_id AND (r.superseded_by = $memory_id OR r.ended_by = $memory_id
    OR $memory_id IN r.supersedes OR $memory_id IN r.associations OR $memory_id IN r.contests)
  SET r.superseded_by = CASE WHEN r.superseded_by = $memory_id THEN null ELSE r.superseded_by END,
      r.ended_by = CASE WHEN r.ended_by = $memory_id THEN null ELSE r.ended_by END,
      r.supersedes = nullIf([id IN r.supersedes WHERE id <> $memory_id], []),
      r.associations = nullIf([id IN r.associations WHERE id <> $memory_id], []),
      r.contests = nullIf([id IN r.contests WHERE id <> $memory_id], []),
      r.revision = u.revision
}
CALL () {
  MATCH ()-[reference:REFERS_TO {group_id: $group_id, memory_id: $memory_id}]->() DELETE reference
}
CALL () {
  MATCH (m:Episodic {group_id: $group_id}) WHERE any(uuid IN $uuids WHERE uuid IN m.entity_edges)
  SET m.entity_edges = [uuid IN m.entity_edges WHERE NOT uuid IN $uuids]
}

// name: list_derived_profiles(group_id, memory_id)
// List the profiles of which a version was written from a memory.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.profile_of > '' AND $memory_id IN r.derived_from
RETURN DISTINCT r.memory_id AS id

// name: find_memory_ids(group_ids, prefix, limit)
// Find the ids of memories that begin with a text.
UNWIND $group_ids AS group_id
MATCH ()-[r:RELATES_TO {group_id: group_id}]->() WHERE r.memory_id STARTS WITH $prefix
RETURN DISTINCT r.memory_id AS id LIMIT $limit
