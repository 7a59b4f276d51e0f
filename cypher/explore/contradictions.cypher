// Contradictions that consolidation runs reported and left alone, the latest first, with the memories they name.
WITH 'default:mara' AS group_id
MATCH (run:ConsolidationRun {group_id: group_id})
WHERE run.contradictions IS NOT NULL AND run.contradictions <> '[]'
MATCH (subject:Entity)-[fact:RELATES_TO {group_id: group_id}]->(object:Entity)
WHERE run.contradictions CONTAINS fact.memory_id AND fact.known_to > datetime() AND NOT fact.retired
RETURN run.created_at AS reported, fact.fact AS statement, fact.valid_at AS valid_at, run.contradictions AS report,
       subject, CASE WHEN subject <> object THEN fact END AS fact, object
ORDER BY reported DESC
LIMIT 300
