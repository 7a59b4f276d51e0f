// What a consolidation run changed: the run with each changed element before and after. Set `:params {tenant: "default", run_id: "…"}` first.
MATCH (run:ConsolidationRun {id: $run_id, tenant: $tenant})-[changed:CHANGED]->(change:Change)
RETURN run, changed, change
