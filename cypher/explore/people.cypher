// People and the current facts about them. Set `:params {group_id: "default:mara"}` first.
MATCH (person:Person {group_id: $group_id})-[fact:RELATES_TO]-(other:Entity)
WHERE fact.known_to > datetime() AND fact.valid_from <= datetime() AND fact.valid_to > datetime()
RETURN person, fact, other
