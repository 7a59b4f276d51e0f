// Facts: the versions of memories on RELATES_TO edges. Every query names the user's group.

// name: lock_user(group_id, tenant, user_id, now, count)
// Lock a user for this transaction, count its writes, and tell when the last one was.
MERGE (u:User {group_id: $group_id})
ON CREATE SET u.tenant = $tenant, u.user_id = $user_id, u.created_at = $now, u.write_version = 0
SET u.write_version = u.write_version + $count
RETURN u.write_version AS write_version, u.last_write_at AS last_write_at

// name: set_last_write_time(group_id, at)
// Remember the time of the user's latest write.
MATCH (u:User {group_id: $group_id}) SET u.last_write_at = $at

// name: get_write_version(group_ids)
// Tell how often users were written to; caches are keyed by it.
MATCH (u:User) WHERE u.group_id IN $group_ids
RETURN sum(u.write_version) AS write_version

// name: fetch_for_write(group_id, hashes, memory_ids, pairs)
// Fetch the latest versions a write may touch: same statement, named ids, same subject and predicate.
CALL () {
  UNWIND $hashes AS hash
  MATCH ()-[r:RELATES_TO {group_id: $group_id, content_hash: hash}]->() WHERE r.expired_at IS NULL
  RETURN r
  UNION
  UNWIND $memory_ids AS id
  MATCH ()-[r:RELATES_TO {group_id: $group_id, memory_id: id}]->() WHERE r.expired_at IS NULL
  RETURN r
  UNION
  UNWIND $pairs AS pair
  MATCH (s:Entity {uuid: pair[0]})-[r:RELATES_TO {name: pair[1]}]->()
  WHERE r.group_id = $group_id AND r.expired_at IS NULL
  RETURN r
}
RETURN {{fact_version}}

// name: create_versions(rows)
// Write new versions with the vectors given.
UNWIND $rows AS row
MATCH (s:Entity {uuid: row.subject_id})
MATCH (o:Entity {uuid: row.object_id})
CREATE (s)-[r:RELATES_TO]->(o)
SET r = row.properties

// name: commit_write(group_id, entities, changed, created, episodes, mentioned, now, at)
// Write what became of a user's facts: what they lie between, what ends, what begins, what it is tied to, the time of it.
// A new version has a vector of its own or keeps that of an earlier one; a name that is taken fails by its constraint.
CALL () {
  UNWIND $entities AS properties
  CREATE (e:Entity)
  SET e = properties, e:$(properties.type)
}
CALL () {
  UNWIND $changed AS row
  MATCH ()-[r:RELATES_TO {uuid: row.uuid}]->() WHERE r.group_id = $group_id
  SET r += row.properties
}
CALL () {
  UNWIND $created AS row
  MATCH (s:Entity {uuid: row.subject_id})
  MATCH (o:Entity {uuid: row.object_id})
  OPTIONAL MATCH ()-[earlier:RELATES_TO {uuid: row.vector_source_uuid}]->()
  CREATE (s)-[r:RELATES_TO]->(o)
  SET r = row.properties, r.fact_embedding = coalesce(row.vector, earlier.fact_embedding)
}
CALL () {
  UNWIND $episodes AS row
  MATCH (m:Episodic {uuid: row.episode}) WHERE m.group_id = $group_id
  SET m.entity_edges = m.entity_edges + [uuid IN row.facts WHERE NOT uuid IN m.entity_edges]
  WITH m, row
  UNWIND row.entity_ids AS entity_id
  MATCH (e:Entity {uuid: entity_id})
  MERGE (m)-[mention:MENTIONS]->(e)
  ON CREATE SET mention.uuid = randomUUID(), mention.group_id = $group_id, mention.created_at = $now
}
CALL () {
  {{add_mentions}}
}
MATCH (u:User {group_id: $group_id}) SET u.last_write_at = $at

// name: list_versions(group_ids, memory_id)
// Fetch every version of one memory, oldest first.
MATCH ()-[r:RELATES_TO {memory_id: $memory_id}]->() WHERE r.group_id IN $group_ids
RETURN {{fact_version}}
ORDER BY r.version

// name: fetch_latest(group_ids, memory_ids)
// Fetch the latest version of each memory, believed or not.
UNWIND $memory_ids AS id
UNWIND $group_ids AS group_id
CALL (id, group_id) {
  MATCH ()-[r:RELATES_TO {group_id: group_id, memory_id: id}]->()
  RETURN r ORDER BY r.version DESC LIMIT 1
}
RETURN {{fact_version}}

// name: list_page(group_ids, valid_at, known_at, any_validity, types, tags, not_tags, domain, scope, entity_ids, keyword, session_id, min_importance, min_confidence, created_after, created_before, sort, direction, after_key, after_id, limit)
// List a user's memories as known and valid at two times, by attributes, one page in a stable order.
MATCH ()-[r:RELATES_TO]->() WHERE r.group_id IN $group_ids
  AND r.known_from <= $known_at AND r.known_to > $known_at
  AND ($any_validity OR r.valid_from <= $valid_at AND r.valid_to > $valid_at)
  AND ($types IS NULL OR r.type IN $types)
  AND all(tag IN $tags WHERE tag IN r.tags)
  AND none(tag IN $not_tags WHERE tag IN r.tags)
  AND ($domain IS NULL OR r.domain = $domain)
  AND ($scope IS NULL OR r.scope = $scope)
  AND ($entity_ids IS NULL OR any(id IN $entity_ids WHERE id IN r.entity_ids))
  AND ($keyword IS NULL OR toLower(r.fact) CONTAINS $keyword)
  AND ($session_id IS NULL OR r.session_id = $session_id)
  AND ($min_importance IS NULL OR r.importance >= $min_importance)
  AND ($min_confidence IS NULL OR r.confidence >= $min_confidence)
  AND ($created_after IS NULL OR r.first_created_at >= $created_after)
  AND ($created_before IS NULL OR r.first_created_at < $created_before)
WITH r, $direction * CASE $sort
    WHEN 'importance' THEN r.importance
    WHEN 'valid_at' THEN r.valid_from.epochSeconds * 1000000 + r.valid_from.microsecond
    ELSE r.known_from.epochSeconds * 1000000 + r.known_from.microsecond
  END AS key
WHERE $after_key IS NULL OR key > $after_key OR key = $after_key AND r.memory_id > $after_id
WITH r, key ORDER BY key, r.memory_id LIMIT $limit
RETURN {{fact_version}}, key

// name: reinforce(group_ids, hits)
// Count retrievals: access +n, strength and confidence up to their caps; the caller has locked the users. Times come
// as [seconds since 1970, microseconds].
UNWIND $hits AS hit
MATCH ()-[r:RELATES_TO {memory_id: hit.memory_id}]->() WHERE r.group_id IN $group_ids AND r.expired_at IS NULL AND NOT r.immutable
SET r.access_count = r.access_count + hit.times,
    r.strength = CASE WHEN r.strength + 0.05 * hit.times > 1.0 THEN 1.0 ELSE r.strength + 0.05 * hit.times END,
    r.confidence = CASE WHEN r.confidence >= 0.99 THEN r.confidence
                        WHEN r.confidence + 0.02 * hit.times > 0.99 THEN 0.99
                        ELSE r.confidence + 0.02 * hit.times END,
    r.last_accessed_at = datetime({epochSeconds: hit.at[0], microsecond: hit.at[1]})

// name: erase_memory(group_ids, memory_id)
// Erase every version of one memory, and what points to it.
MATCH ()-[r:RELATES_TO {memory_id: $memory_id}]->() WHERE r.group_id IN $group_ids
WITH collect(r) AS rows, collect(r.uuid) AS uuids
FOREACH (row IN rows | DELETE row)
RETURN size(uuids) AS erased, uuids

// name: erase_references(group_id, memory_id, uuids)
// Remove an erased memory's ids from the facts, entities and messages that name it.
CALL () {
  MATCH ()-[r:RELATES_TO]->()
  WHERE r.group_id = $group_id AND (r.superseded_by = $memory_id OR r.ended_by = $memory_id
    OR $memory_id IN r.supersedes OR $memory_id IN r.associations)
  SET r.superseded_by = CASE WHEN r.superseded_by = $memory_id THEN null ELSE r.superseded_by END,
      r.ended_by = CASE WHEN r.ended_by = $memory_id THEN null ELSE r.ended_by END,
      r.supersedes = [id IN r.supersedes WHERE id <> $memory_id],
      r.associations = [id IN r.associations WHERE id <> $memory_id]
}
CALL () {
  MATCH (e:Entity {group_id: $group_id}) WHERE $memory_id IN e.mentioned_in
  SET e.mentioned_in = [id IN e.mentioned_in WHERE id <> $memory_id]
}
CALL () {
  MATCH (m:Episodic {group_id: $group_id}) WHERE any(uuid IN $uuids WHERE uuid IN m.entity_edges)
  SET m.entity_edges = [uuid IN m.entity_edges WHERE NOT uuid IN $uuids]
}
