// One entity by a name or an alias, with the current facts about it; those without an object are in the table.
WITH 'default:mara' AS group_id, 'Mara' AS name
MATCH (entity:Entity {group_id: group_id})
WHERE toLower(entity.name) = toLower(name) OR any(alias IN entity.aliases WHERE toLower(alias) = toLower(name))
OPTIONAL MATCH (entity)-[fact:RELATES_TO]-(other:Entity)
WHERE fact.known_to > datetime() AND fact.valid_from <= datetime() AND fact.valid_to > datetime()
RETURN DISTINCT entity, CASE WHEN entity <> other THEN fact END AS fact, other, fact.fact AS statement
LIMIT 300
