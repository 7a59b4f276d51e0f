// Orphans: entities without a current fact that no message mentions.
WITH 'default:mara' AS group_id
MATCH (entity:Entity {group_id: group_id})
WHERE NOT EXISTS {
    MATCH (entity)-[fact:RELATES_TO]-(:Entity)
    WHERE fact.known_to > datetime() AND fact.valid_from <= datetime() AND fact.valid_to > datetime()
  }
  AND NOT EXISTS { MATCH (:Episodic)-[:MENTIONS]->(entity) }
RETURN entity, COUNT { (entity)-[:RELATES_TO]-() } AS versions_ever
ORDER BY entity.name
LIMIT 300
