// Up to two steps around an entity: every current fact between the entities that are reached.
WITH 'default:mara' AS group_id, 'Mara' AS name, datetime() AS now
MATCH (entity:Entity {group_id: group_id})
WHERE toLower(entity.name) = toLower(name) OR any(alias IN entity.aliases WHERE toLower(alias) = toLower(name))
MATCH path = (entity)-[:RELATES_TO]-{1,2}(:Entity)
WHERE all(fact IN relationships(path) WHERE fact.known_to > now AND fact.valid_from <= now AND fact.valid_to > now
  AND startNode(fact) <> endNode(fact))
RETURN path
LIMIT 300
