// The contexts that held a memory, and how the answers that they led to were rated: of the memory with the id, or of all.
WITH 'default:mara' AS group_id, '' AS memory_id
MATCH (use:ContextUse {group_id: group_id}) WHERE memory_id = '' OR memory_id IN use.memory_ids
WITH group_id, memory_id, use ORDER BY use.created_at DESC LIMIT 100
UNWIND use.memory_ids AS held
MATCH (subject)-[version:RELATES_TO {group_id: group_id, memory_id: held}]->(object)
WHERE memory_id IN ['', held] AND version.expired_at IS NULL
RETURN use.created_at AS used_at, use.session_id AS session, use.score AS score, version.fact AS statement, subject,
       CASE WHEN NOT version.retired THEN version END AS version, object
LIMIT 300
