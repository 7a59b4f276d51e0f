// What a consolidation run did: each changed element before and after, of the run with the id or else of the latest.
WITH 'default:mara' AS group_id, '' AS run_id
CALL (group_id, run_id) {
  MATCH (run:ConsolidationRun {group_id: group_id})
  WHERE run_id IN ['', run.id]
  RETURN run ORDER BY run.created_at DESC LIMIT 1
}
MATCH (run)-[changed:CHANGED]->(change:Change)
RETURN run, changed, change, change.kind AS kind, change.before AS before, change.after AS after
ORDER BY change.position
LIMIT 300
