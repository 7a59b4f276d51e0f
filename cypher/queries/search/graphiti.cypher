// Reading a group of a graph that Graphiti wrote, in whichever database.

// name: list_entities(group_id)
// Return every entity of a group without its vector.
MATCH (n:Entity {group_id: $group_id})
RETURN n {.*, name_embedding: null} AS properties, labels(n) AS labels ORDER BY n.uuid

// name: list_facts(group_id)
// Return every fact of a group without its vector, with the ids of its ends.
MATCH (s:Entity)-[r:RELATES_TO {group_id: $group_id}]->(o:Entity)
RETURN r {.*, fact_embedding: null} AS properties, s.uuid AS source, o.uuid AS target ORDER BY r.created_at, r.uuid

// name: list_episodes(group_id)
// Return every episode of a group, the oldest first.
MATCH (m:Episodic {group_id: $group_id})
RETURN m {.*, content_embedding: null} AS properties ORDER BY m.valid_at, m.uuid
