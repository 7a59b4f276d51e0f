// Contested memories, the latest first, with the more trusted ones that they contradict.
WITH 'default:mara' AS group_id
MATCH (:Entity)-[contested:RELATES_TO {group_id: group_id}]->(:Entity)
WHERE contested.status = 'contested' AND contested.expired_at IS NULL
UNWIND contested.contests AS memory_id
MATCH (subject:Entity)-[known:RELATES_TO {group_id: group_id, memory_id: memory_id}]->(object:Entity)
WHERE known.known_to > datetime()
RETURN contested.created_at AS since, contested.fact AS contested, contested.source_kind AS said_by, contested.speaker AS speaker,
       known.fact AS known, known.source_kind AS known_by, contested.memory_id AS memory_id,
       subject, CASE WHEN subject <> object THEN known END AS fact, object
ORDER BY since DESC
LIMIT 300
