// People and the current facts about them; what is stated about a person alone is in the table, under `statement`.
WITH 'default:mara' AS group_id
MATCH (person:Person {group_id: group_id})-[fact:RELATES_TO]-(other:Entity)
WHERE fact.known_to > datetime() AND fact.valid_from <= datetime() AND fact.valid_to > datetime()
RETURN DISTINCT person, CASE WHEN person <> other THEN fact END AS fact, other, fact.fact AS statement
LIMIT 300
