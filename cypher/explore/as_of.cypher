// What was believed at one time about another: all facts that hold at `valid_as_of`, as known at `known_as_of`.
WITH 'default:mara' AS group_id, datetime() AS known_as_of, datetime() AS valid_as_of
MATCH (subject:Entity)-[fact:RELATES_TO {group_id: group_id}]->(object:Entity)
WHERE fact.known_from <= known_as_of AND fact.known_to > known_as_of
  AND fact.valid_from <= valid_as_of AND fact.valid_to > valid_as_of
RETURN subject, CASE WHEN subject <> object THEN fact END AS fact, object, fact.fact AS statement
LIMIT 300
