// The latest consolidation runs of the tenant, whose ids `consolidation_run.cypher` takes.
WITH 'default:mara' AS group_id
WITH split(group_id, ':')[0] AS tenant
MATCH (run:ConsolidationRun {tenant: tenant})
RETURN run.id AS run_id, run.group_id AS user, run.trigger AS trigger, run.status AS status,
       run.created_at AS created_at, run.change_count AS changes
ORDER BY created_at DESC
LIMIT 50
