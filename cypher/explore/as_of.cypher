// What was believed at one time about another time. Set `:params {group_id: "default:mara", known_as_of: "2026-06-01T12:00:00Z", valid_as_of: "2026-06-01T12:00:00Z"}` first.
MATCH (subject:Entity)-[fact:RELATES_TO {group_id: $group_id}]->(object:Entity)
WHERE fact.known_from <= datetime($known_as_of) AND fact.known_to > datetime($known_as_of)
  AND fact.valid_from <= datetime($valid_as_of) AND fact.valid_to > datetime($valid_as_of)
RETURN subject, fact, object
