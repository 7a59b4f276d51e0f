// Every version of one memory, the oldest first: of the memory with the id, or else of the one that changed last. A version
// that a revert or a merge retired ends where it starts.
WITH 'default:mara' AS group_id, '' AS memory_id
CALL (group_id, memory_id) {
  MATCH (:Entity)-[latest:RELATES_TO {group_id: group_id}]->(:Entity)
  WHERE latest.memory_id = memory_id OR memory_id = '' AND latest.version > 1
  RETURN latest.memory_id AS chosen ORDER BY latest.created_at DESC LIMIT 1
}
MATCH (subject:Entity)-[version:RELATES_TO {group_id: group_id, memory_id: chosen}]->(object:Entity)
RETURN version.version AS version, version.fact AS statement, version.valid_at AS valid_at,
       CASE WHEN version.retired THEN coalesce(version.valid_at, version.created_at) ELSE version.invalid_at END AS invalid_at,
       version.created_at AS known_from,
       CASE WHEN version.retired THEN coalesce(version.expired_at, version.created_at) ELSE version.expired_at END AS known_to,
       version.source_kind AS said_by, version.speaker AS speaker, version.actor AS actor, version.status AS status,
       version.ended_reason AS ended_reason, subject.name AS subject, object.name AS object, chosen AS memory_id
ORDER BY version
