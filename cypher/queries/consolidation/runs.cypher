// Runs: consolidation runs as nodes, each with its proposals and, over all users, its parts.

// name: create(properties)
// Write a run unless it exists.
MERGE (r:ConsolidationRun {id: $properties.id}) ON CREATE SET r = $properties

// name: add_child(run_id, part_id)
// Make the run of one user a part of a run over all users.
MATCH (parent:ConsolidationRun {id: $run_id})
MATCH (part:ConsolidationRun {id: $part_id})
MERGE (parent)-[:PART]->(part)

// name: update(run_id, properties)
// Set properties of a run; null removes one.
MATCH (r:ConsolidationRun {id: $run_id}) SET r += $properties

// name: get(run_id, tenant)
// Fetch a run with its parts.
MATCH (r:ConsolidationRun {id: $run_id}) WHERE r.tenant = $tenant
RETURN properties(r) AS run, COLLECT { MATCH (r)-[:PART]->(p) RETURN properties(p) ORDER BY p.group_id } AS parts

// name: get_undone_run_id(run_id)
// Fetch the id of the run that a rollback undid.
MATCH (r:ConsolidationRun {id: $run_id}) RETURN r.undoes AS undoes

// name: list_page(tenant, before, before_id, limit)
// List the runs of a tenant, newest first; the parts of a run over all users are listed under their user only.
// The order of an index is used only where every property of it is in ORDER BY, hence the tenant.
MATCH (r:ConsolidationRun {tenant: $tenant})
WHERE r.created_at <= coalesce($before, datetime({year: 9999}))
  AND ($before IS NULL OR r.created_at < $before OR r.id > $before_id)
  AND NOT EXISTS { (r)<-[:PART]-() }
WITH r ORDER BY r.tenant DESC, r.created_at DESC, r.id LIMIT $limit
RETURN r {.*, proposals: null, contradictions: null, batch_ids: null, preview: null} AS run,
       COLLECT { MATCH (r)-[:PART]->(p) RETURN p {.*, proposals: null, contradictions: null, batch_ids: null, preview: null} } AS parts

// name: list_page_of_user(group_id, before, before_id, limit)
// List the runs of a user, newest first.
MATCH (r:ConsolidationRun {group_id: $group_id})
WHERE $before IS NULL OR r.created_at < $before OR r.created_at = $before AND r.id > $before_id
WITH r ORDER BY r.created_at DESC, r.id LIMIT $limit
RETURN r {.*, proposals: null, contradictions: null, batch_ids: null, preview: null} AS run, [] AS parts

// name: list_contradictions(group_id, limit)
// List the latest runs of a user that reported contradictions, newest first.
MATCH (r:ConsolidationRun {group_id: $group_id}) WHERE r.contradictions IS NOT NULL AND r.contradictions <> '[]'
WITH r ORDER BY r.created_at DESC, r.id LIMIT $limit
RETURN r.id AS run_id, r.contradictions AS contradictions, coalesce(r.finished_at, r.created_at) AS reported_at

// name: list_unfinished()
// List the queued and running runs of one user each, oldest first.
MATCH (r:ConsolidationRun) USING INDEX r:ConsolidationRun(status)
WHERE r.status IN ['queued', 'running'] AND r.group_id IS NOT NULL
RETURN r.id AS id, r.tenant AS tenant ORDER BY r.created_at

// name: list_unfinished_nightly(tenant, group_id)
// List the queued and running nightly runs of a user, oldest first.
MATCH (r:ConsolidationRun {group_id: $group_id})
WHERE r.tenant = $tenant AND r.trigger = 'nightly' AND r.status IN ['queued', 'running']
RETURN r.id AS id ORDER BY r.created_at

// name: list_rolled_back_proposals(group_id)
// List the proposals of a user's runs that were rolled back.
MATCH (r:ConsolidationRun {group_id: $group_id, status: 'rolled_back'}) WHERE r.proposals IS NOT NULL
RETURN r.proposals AS proposals

// name: find_mentioning(group_id, ids)
// Find the runs whose proposals, contradictions, batches or preview contain one of some ids, or that tried a profile of one.
MATCH (r:ConsolidationRun {group_id: $group_id})
WHERE any(id IN $ids WHERE r.proposals CONTAINS id OR r.contradictions CONTAINS id OR r.batch_ids CONTAINS id
  OR r.preview CONTAINS id OR id IN r.unprofiled)
RETURN r.id AS id, r.proposals AS proposals, r.contradictions AS contradictions, r.batch_ids AS batch_ids,
       r.unprofiled AS unprofiled

// name: clear_expired_texts(group_id, before)
// Clear the proposals, contradictions, batches and previews of a user's runs that finished before a time.
MATCH (r:ConsolidationRun {group_id: $group_id})
WHERE r.finished_at < $before AND (r.proposals <> '[]' OR coalesce(r.contradictions, '[]') <> '[]')
SET r.proposals = '[]', r.contradictions = null, r.batch_ids = null, r.preview = null
RETURN count(*) AS blanked

// name: find_ids(tenant, prefix, limit)
// Find the ids of a tenant's runs that begin with a text.
MATCH (r:ConsolidationRun) WHERE r.id STARTS WITH $prefix AND r.tenant = $tenant
RETURN r.id AS id LIMIT $limit
