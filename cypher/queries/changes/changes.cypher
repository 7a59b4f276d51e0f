// Changes: what became known of a user between two times, from the versions themselves and from what rollbacks recorded.

// name: list_page(group_ids, since, until, after_key, limit)
// List the changes from one known time up to another, oldest first; `after_key` continues within the first time.
// A version is a change when it is created, and when it is deleted or archived; a rollback changes memories in place.
UNWIND $group_ids AS group_id
CALL (group_id) {
  MATCH ()-[r:RELATES_TO]->()
  WHERE r.group_id = group_id AND r.created_at >= $since AND r.created_at < $until
  RETURN r.created_at AS at, r.uuid + ':created' AS key, r.uuid AS version_id, null AS run_id, r.memory_id AS memory_id
  UNION ALL
  MATCH ()-[r:RELATES_TO]->()
  WHERE r.group_id = group_id AND r.expired_at >= $since AND r.expired_at < $until AND r.end_status IN ['deleted', 'archived']
  RETURN r.expired_at AS at, r.uuid + ':ended' AS key, r.uuid AS version_id, null AS run_id, r.memory_id AS memory_id
  UNION ALL
  MATCH (c:Change)
  WHERE c.group_id = group_id AND c.created_at >= $since AND c.created_at < $until AND c.memory_id IS NOT NULL
  MATCH (run:ConsolidationRun {id: c.run_id}) WHERE run.trigger = 'rollback'
  RETURN DISTINCT c.created_at AS at, run.id + ':' + c.memory_id AS key, null AS version_id, run.id AS run_id,
    c.memory_id AS memory_id
}
WITH at, key, version_id, run_id, memory_id WHERE at > $since OR $after_key IS NULL OR key > $after_key
WITH at, key, version_id, run_id, memory_id ORDER BY at, key LIMIT $limit
OPTIONAL MATCH (run:ConsolidationRun {id: run_id})
RETURN at.epochSeconds * 1000000 + at.microsecond AS at, key, version_id, run_id, memory_id, run.actor AS actor,
  run.undoes AS undoes

// name: fetch_versions(group_ids, ids)
// Fetch versions by id.
UNWIND $ids AS id
MATCH ()-[r:RELATES_TO {uuid: id}]->() WHERE r.group_id IN $group_ids
RETURN {{fact_version}}

// name: fetch_previous_versions(group_ids, rows)
// Fetch the version before each one given by its memory and its number.
UNWIND $rows AS row
UNWIND $group_ids AS group_id
MATCH ()-[r:RELATES_TO {memory_id: row.memory_id}]->() WHERE r.group_id = group_id AND r.version = row.version - 1
RETURN {{fact_version}}
