// The messages that memories were taken from, with their sessions: of the memory with the id, or else of all.
WITH 'default:mara' AS group_id, '' AS memory_id
MATCH (:Entity)-[version:RELATES_TO {group_id: group_id}]->(:Entity)
WHERE memory_id IN ['', version.memory_id] AND version.known_to > datetime()
UNWIND version.episodes AS episode
MATCH (session:Session)-[link:HAS_EPISODE]->(message:Episodic {uuid: episode, group_id: group_id})
OPTIONAL MATCH (message)-[mention:MENTIONS]->(entity:Entity)
RETURN DISTINCT version.fact AS statement, coalesce(message.redacted, message.content) AS said, session, link, message,
       mention, entity
LIMIT 300
