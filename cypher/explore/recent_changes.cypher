// What changed since a time: versions that were learned or that ended, the latest first.
WITH 'default:mara' AS group_id, datetime() - duration('P7D') AS since
MATCH (subject:Entity)-[version:RELATES_TO {group_id: group_id}]->(object:Entity)
WHERE version.created_at >= since OR version.expired_at >= since
RETURN CASE WHEN version.expired_at >= since OR version.retired THEN coalesce(version.ended_reason, 'ended') ELSE 'learned' END AS change,
       coalesce(version.expired_at, version.created_at) AS at, version.fact AS statement, version.version AS version,
       version.source_kind AS said_by, version.speaker AS speaker, version.actor AS actor
ORDER BY at DESC
LIMIT 300
