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

// name: count_stored(group_id)
// Return how many entities, facts and episodes a group has, and how many vectors these have together.
CALL () { MATCH (n:Entity {group_id: $group_id}) RETURN count(n) AS entities, count(n.name_embedding) AS entity_vectors }
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
  RETURN count(r) AS facts, count(r.fact_embedding) AS fact_vectors
}
CALL () {
  MATCH (m:Episodic {group_id: $group_id})
  RETURN count(m) AS episodes, count(m.content_embedding) AS episode_vectors
}
RETURN entities, facts, episodes, entity_vectors + fact_vectors + episode_vectors AS vectors
