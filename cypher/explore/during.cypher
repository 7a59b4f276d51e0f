// Everything about a time: facts that held at some point of it, and the messages of that time.
WITH 'default:mara' AS group_id, datetime() - duration('P1M') AS from_time, datetime() AS to_time
CALL (group_id, from_time, to_time) {
  MATCH (subject:Entity)-[fact:RELATES_TO {group_id: group_id}]->(object:Entity)
  WHERE fact.known_to > datetime() AND fact.valid_from < to_time AND fact.valid_to > from_time
    AND fact.valid_from < fact.valid_to
  RETURN subject AS start, CASE WHEN subject <> object THEN fact END AS link, object AS end, fact.fact AS text,
         fact.valid_at AS at
  UNION ALL
  MATCH (session:Session)-[sent:HAS_EPISODE]->(message:Episodic {group_id: group_id})
  WHERE message.valid_at >= from_time AND message.valid_at < to_time
  RETURN session AS start, sent AS link, message AS end, coalesce(message.redacted, message.content) AS text,
         message.valid_at AS at
}
RETURN at, text, start, link, end
ORDER BY at
LIMIT 300
