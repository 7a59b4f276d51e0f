// What changed this week: versions that were learned or that ended, the latest first. Set `:params {group_id: "default:mara", days: 7}` first.
MATCH (subject:Entity)-[version:RELATES_TO {group_id: $group_id}]->(object:Entity)
WITH subject, version, object, datetime() - duration({days: $days}) AS since
WHERE version.created_at >= since OR version.expired_at >= since
RETURN CASE WHEN version.expired_at >= since THEN coalesce(version.ended_reason, 'ended') ELSE 'learned' END AS change,
       coalesce(version.expired_at, version.created_at) AS at, version.fact AS statement, version.version AS version,
       version.actor AS actor, subject, version AS fact, object
ORDER BY at DESC
LIMIT 300
