// Orphans: entities without a current fact that no message mentions. Set `:params {group_id: "default:mara"}` first.
MATCH (entity:Entity {group_id: $group_id})
WHERE NOT EXISTS {
    MATCH (entity)-[fact:RELATES_TO]-(:Entity)
    WHERE fact.known_to > datetime() AND fact.valid_from <= datetime() AND fact.valid_to > datetime()
  }
  AND NOT EXISTS { MATCH (:Episodic)-[:MENTIONS]->(entity) }
RETURN entity, COUNT { (entity)-[:RELATES_TO]-() } AS versions_ever
ORDER BY entity.name
