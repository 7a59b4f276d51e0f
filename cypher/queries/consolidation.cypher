// Consolidation: runs as nodes, what proposals are judged by, and what they do.

// name: create_run(properties)
// Write a run, once.
MERGE (r:ConsolidationRun {id: $properties.id}) ON CREATE SET r = $properties

// name: add_child_run(run_id, part_id)
// Make a user's run part of a run over all users.
MATCH (parent:ConsolidationRun {id: $run_id})
MATCH (part:ConsolidationRun {id: $part_id})
MERGE (parent)-[:PART]->(part)

// name: update_run(run_id, properties)
// Set what has become of a run.
MATCH (r:ConsolidationRun {id: $run_id}) SET r += $properties

// name: get_run(run_id, tenant)
// Fetch a run with its parts.
MATCH (r:ConsolidationRun {id: $run_id}) WHERE r.tenant = $tenant
RETURN properties(r) AS run, COLLECT { MATCH (r)-[:PART]->(p) RETURN properties(p) ORDER BY p.group_id } AS parts

// name: get_undone_run_id(run_id)
// Tell which run a rollback undid.
MATCH (r:ConsolidationRun {id: $run_id}) RETURN r.undoes AS undoes

// name: list_runs(tenant, group_id, before, before_id, limit)
// List runs, the newest first; parts of a run over all users are listed under the user only.
MATCH (r:ConsolidationRun {tenant: $tenant})
WHERE ($before IS NULL OR r.created_at < $before OR r.created_at = $before AND r.id > $before_id)
  AND ($group_id IS NOT NULL AND r.group_id = $group_id OR $group_id IS NULL AND NOT EXISTS { (r)<-[:PART]-() })
WITH r ORDER BY r.created_at DESC, r.id LIMIT $limit
RETURN r {.*, proposals: null, batch_ids: null, preview: null} AS run,
       COLLECT { MATCH (r)-[:PART]->(p) RETURN p {.*, proposals: null, batch_ids: null, preview: null} } AS parts

// name: list_unfinished_runs(tenant, group_id)
// Find the runs of a user that are still to be finished.
MATCH (r:ConsolidationRun {group_id: $group_id}) WHERE r.tenant = $tenant AND r.status IN ['queued', 'running']
RETURN properties(r) AS run ORDER BY r.created_at

// name: erase_runs(group_id)
// Erase the runs of a user.
MATCH (r:ConsolidationRun {group_id: $group_id}) DETACH DELETE r
RETURN count(*) AS erased

// name: find_runs_mentioning(group_id, memory_id)
// Find the runs whose proposals name a memory.
MATCH (r:ConsolidationRun {group_id: $group_id}) WHERE r.proposals CONTAINS $memory_id OR r.batch_ids CONTAINS $memory_id OR r.preview CONTAINS $memory_id
RETURN r.id AS id, r.proposals AS proposals, r.batch_ids AS batch_ids

// name: clear_expired_texts(before)
// Take the texts of proposals out of runs that are past their retention.
MATCH (r:ConsolidationRun) WHERE r.finished_at < $before AND r.proposals <> '[]'
SET r.proposals = '[]', r.batch_ids = null, r.preview = null
RETURN count(*) AS blanked

// name: fetch_entities(group_id, ids)
// Fetch entities with their other names.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
RETURN e {.*, name_embedding: null} AS entity

// name: find_entities_sharing_words(group_id, words)
// Find entities that have one of some words in their names.
MATCH (e:Entity {group_id: $group_id}) WHERE any(word IN $words WHERE e.name_key CONTAINS word)
RETURN e {.*, name_embedding: null} AS entity LIMIT 500

// name: fetch_entity_facts(group_id, entity_id)
// Fetch every version of the facts at an entity's edges and of those that mention it.
CALL () {
  MATCH (:Entity {uuid: $entity_id})-[r:RELATES_TO]-() RETURN r
  UNION
  MATCH (e:Entity {uuid: $entity_id}) UNWIND e.mentioned_in AS id
  MATCH ()-[r:RELATES_TO {group_id: e.group_id, memory_id: id}]->() RETURN r
}
WITH DISTINCT r WHERE r.group_id = $group_id
RETURN {{fact_version}}

// name: find_mentioning_messages(group_id, entity_id)
// Find the messages that mention an entity.
MATCH (m:Episodic)-[:MENTIONS]->(:Entity {uuid: $entity_id}) WHERE m.group_id = $group_id
RETURN DISTINCT m.uuid AS id

// name: list_other_relationships(entity_id)
// Tell what lies at an entity beside facts and mentions.
MATCH (:Entity {uuid: $entity_id})-[r]-() WHERE NOT r:RELATES_TO AND NOT r:MENTIONS
RETURN DISTINCT type(r) AS type

// name: count_current_facts(group_id, now)
// Count the memories of a user that are current.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND r.valid_from <= $now AND r.valid_to > $now
RETURN count(r) AS current

// name: reattach_facts(group_id, rows)
// Lay fact edges between other entities; they keep their vectors and all else that is not set anew.
UNWIND $rows AS row
MATCH ()-[old:RELATES_TO {uuid: row.id}]->() WHERE old.group_id = $group_id
MATCH (s:Entity {uuid: row.source})
MATCH (o:Entity {uuid: row.target})
WITH row, old, s, o, properties(old) AS kept
// An edge changed earlier in the transaction holds its keys even when it is deleted: take them from it first.
SET old = {}
DELETE old
CREATE (s)-[r:RELATES_TO]->(o)
SET r = kept, r += row.properties

// name: reattach_mentions(group_id, keep_id, merge_id)
// Let the messages that mention one entity mention another in its place.
MATCH (m:Episodic)-[old:MENTIONS]->(:Entity {uuid: $merge_id}) WHERE m.group_id = $group_id
MATCH (keep:Entity {uuid: $keep_id})
WITH m, old, keep, properties(old) AS kept
DELETE old
MERGE (m)-[r:MENTIONS]->(keep)
ON CREATE SET r = kept

// name: mark_consolidated(group_id, memory_ids, run_id, now)
// Remember of which memories consolidation has taken note.
UNWIND $memory_ids AS id
MATCH ()-[r:RELATES_TO {memory_id: id}]->()
WHERE r.group_id = $group_id AND r.expired_at IS NULL AND r.consolidated_at IS NULL
SET r.consolidated_at = $now, r.consolidated_by = $run_id

// name: unmark_consolidated(group_id, run_id)
// Forget that a run took note of memories.
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.consolidated_by = $run_id
  REMOVE r.consolidated_at, r.consolidated_by
}
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.compressed_by = $run_id
  REMOVE r.compressed_at, r.compressed_by
}

// name: fetch_discovery_candidates(group_id, now)
// Fetch what discovery weighs: every current memory that may be changed, with its vector.
MATCH (s)-[r:RELATES_TO {group_id: $group_id}]->()
WHERE r.expired_at IS NULL AND r.valid_from <= $now AND r.valid_to > $now
  AND NOT r.immutable AND r.scope <> 'global' AND r.fact_embedding IS NOT NULL
RETURN r.memory_id AS memory_id, s.uuid AS subject_id, r.scope AS scope, r.domain AS domain, r.entity_ids AS entity_ids,
       size(r.associations) AS associations, r.first_created_at AS created_at, r.access_count AS access_count,
       r.consolidated_at IS NULL AS is_new, r.compressed_at IS NOT NULL AS considered_for_compression, r.fact_embedding AS vector

// name: list_users_due(tenant, now, old_before, access_threshold)
// Find the users with memories that no run has looked at, or that have become old and seldom read since.
MATCH (u:User) WHERE ($tenant IS NULL OR u.tenant = $tenant) AND u.user_id <> ''
  AND EXISTS {
    MATCH ()-[r:RELATES_TO {group_id: u.group_id}]->()
    WHERE r.expired_at IS NULL AND r.scope <> 'global' AND NOT r.immutable AND r.fact_embedding IS NOT NULL
      AND r.valid_from <= $now AND r.valid_to > $now
      AND (r.consolidated_at IS NULL
        OR r.compressed_at IS NULL AND r.first_created_at < $old_before AND r.access_count < $access_threshold)
  }
RETURN u.tenant AS tenant, u.user_id AS user_id ORDER BY tenant, user_id

// name: list_unfinished_nightly_runs(tenant)
// Find the nightly runs that are still to be finished.
MATCH (r:ConsolidationRun {trigger: 'nightly'})
WHERE r.status IN ['queued', 'running'] AND r.group_id IS NOT NULL AND ($tenant IS NULL OR r.tenant = $tenant)
RETURN r.id AS id, r.tenant AS tenant, r.group_id AS group_id ORDER BY r.created_at

// name: fetch_rolled_back_proposals(group_id)
// Fetch the proposals of runs that were rolled back.
MATCH (r:ConsolidationRun {group_id: $group_id, status: 'rolled_back'}) WHERE r.proposals IS NOT NULL
RETURN r.proposals AS proposals

// name: mark_considered_for_compression(group_id, memory_ids, run_id, now)
// Remember which old memories were considered for compression.
UNWIND $memory_ids AS id
MATCH ()-[r:RELATES_TO {memory_id: id}]->()
WHERE r.group_id = $group_id AND r.expired_at IS NULL AND r.compressed_at IS NULL
SET r.compressed_at = $now, r.compressed_by = $run_id

// name: find_similar_fact_pairs(group_id, ids, min_similarity)
// Find pairs among some memories of one place whose vectors nearly agree and that do not point to one another yet.
UNWIND $ids AS id
MATCH (s)-[r:RELATES_TO {group_id: $group_id, memory_id: id}]->() WHERE r.expired_at IS NULL
WITH collect({fact: r, subject: s.uuid}) AS found
UNWIND range(0, size(found) - 2) AS i
UNWIND range(i + 1, size(found) - 1) AS j
WITH found[i] AS one, found[j] AS other
WHERE one.subject = other.subject AND one.fact.scope = other.fact.scope
  AND coalesce(one.fact.domain, '') = coalesce(other.fact.domain, '')
  AND NOT other.fact.memory_id IN one.fact.associations
  AND 2 * vector.similarity.cosine(one.fact.fact_embedding, other.fact.fact_embedding) - 1 >= $min_similarity
RETURN [one.fact.memory_id, other.fact.memory_id] AS ids, [one.fact.version, other.fact.version] AS versions
