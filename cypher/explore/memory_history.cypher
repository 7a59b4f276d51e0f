// Every version of one memory, the oldest first. Set `:params {group_id: "default:mara", memory_id: "…"}` first.
MATCH (subject:Entity)-[version:RELATES_TO {group_id: $group_id, memory_id: $memory_id}]->(object:Entity)
RETURN version.version AS version, version.fact AS statement, version.valid_at AS valid_at,
       version.invalid_at AS invalid_at, version.created_at AS known_from, version.expired_at AS known_to,
       version.ended_reason AS ended_reason, subject, object
ORDER BY version
