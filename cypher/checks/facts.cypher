// Versions of memories: both time axes, their shadow bounds, and what is never valid at the same time.

// name: missing_versions(tenant, limit)
// A version of a memory lacks the one before it.
// Fix: Restore a backup, or delete the memory with `hard: true`.
MATCH ()-[r:RELATES_TO]->() WHERE r.version > 1
  AND NOT EXISTS { MATCH ()-[:RELATES_TO {group_id: r.group_id, memory_id: r.memory_id, version: r.version - 1}]->() }
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: known_gaps(tenant, limit)
// The known time of a version does not begin when that of the one before it ends.
// Fix: Restore a backup, or delete the memory with `hard: true`.
MATCH ()-[r:RELATES_TO]->() WHERE r.version > 1
MATCH ()-[earlier:RELATES_TO {group_id: r.group_id, memory_id: r.memory_id, version: r.version - 1}]->()
WHERE earlier.expired_at IS NULL OR earlier.expired_at <> r.created_at
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: empty_known_times(tenant, limit)
// A version is believed at no time.
// Fix: Restore a backup, or delete the memory with `hard: true`.
MATCH ()-[r:RELATES_TO]->() WHERE r.created_at >= r.expired_at OR r.created_at IS NULL
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: ended_without_successor(tenant, limit)
// The belief in a memory has ended, but it has neither a next version nor been deleted or archived.
// Fix: Restore a backup, or save the statement again.
MATCH ()-[r:RELATES_TO]->() WHERE r.expired_at IS NOT NULL AND r.end_status IS NULL
  AND NOT EXISTS { MATCH ()-[:RELATES_TO {group_id: r.group_id, memory_id: r.memory_id, version: r.version + 1}]->() }
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: wrong_shadow_bounds(tenant, limit)
// The shadow bounds of a version differ from its times, so that reads as of a time find or miss it wrongly.
// Fix: Correct the memory with PATCH: its next version gets the right bounds.
MATCH ()-[r:RELATES_TO]->()
WITH r, coalesce(r.valid_at, datetime('0001-01-01T00:00Z')) AS valid_from, datetime('9999-12-31T00:00Z') AS open
WITH r, valid_from, open, CASE
    WHEN r.expires_at < coalesce(r.invalid_at, open) THEN r.expires_at
    ELSE coalesce(r.invalid_at, open) END AS end
WITH r, valid_from, open, CASE
    WHEN r.status = 'contested' THEN datetime('0001-01-01T00:00Z')
    WHEN r.retired OR end < valid_from THEN valid_from ELSE end END AS valid_to,
  CASE WHEN r.status = 'contested' THEN r.created_at ELSE coalesce(r.expired_at, open) END AS known_to
WHERE r.valid_from IS NULL OR r.valid_from <> valid_from OR r.valid_to IS NULL OR r.valid_to <> valid_to
  OR r.known_from IS NULL OR r.known_from <> r.created_at
  OR r.known_to IS NULL OR r.known_to <> known_to
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: wrong_active_hashes(tenant, limit)
// The active hash of a version is not that of its statement, or the version is no longer believed.
// Fix: Correct the memory with PATCH: its next version gets the right hash.
MATCH (s)-[r:RELATES_TO]->()
WHERE r.active_hash IS NOT NULL AND (r.expired_at IS NOT NULL OR NOT r.active_hash STARTS WITH r.content_hash + ':' + s.uuid + ':')
WITH r.group_id AS group_id, r.memory_id AS id
{{violation}}

// name: repeated_statements(tenant, limit)
// Two memories state the same now.
// Fix: Delete all but one of them.
MATCH (s:Entity)
CALL (s) {
  MATCH (s)-[r:RELATES_TO]->(o)
  WHERE r.expired_at IS NULL AND r.valid_from <= datetime() AND r.valid_to > datetime()
  WITH r.content_hash AS statement, r.name AS predicate, o AS object, collect(r.memory_id) AS ids
  WHERE size(ids) > 1
  UNWIND ids AS id
  RETURN id
}
WITH s.group_id AS group_id, id
{{violation}}

// name: rival_values(tenant, limit)
// A single-valued predicate of a subject has several values now.
// Fix: Delete the wrong values, or set when they ended (`invalid_at`).
MATCH (s:Entity)
CALL (s) {
  MATCH (s)-[r:RELATES_TO]->(o)
  WHERE r.single_valued AND r.expired_at IS NULL AND r.valid_from <= datetime() AND r.valid_to > datetime()
  WITH r.name AS predicate, count(DISTINCT r.content_hash + o.uuid) AS values, collect(r.memory_id) AS ids
  WHERE values > 1
  UNWIND ids AS id
  RETURN id
}
WITH s.group_id AS group_id, id
{{violation}}
