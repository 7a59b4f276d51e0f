// The messages that one memory was taken from, with their sessions. Set `:params {group_id: "default:mara", memory_id: "…"}` first.
MATCH (:Entity)-[version:RELATES_TO {group_id: $group_id, memory_id: $memory_id}]->(:Entity)
UNWIND version.episodes AS episode
MATCH (session:Session)-[link:HAS_EPISODE]->(message:Episodic {uuid: episode, group_id: $group_id})
OPTIONAL MATCH (message)-[mention:MENTIONS]->(entity:Entity)
RETURN DISTINCT session, link, message, mention, entity
