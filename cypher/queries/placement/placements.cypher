// In which graph tenants and users live, in the home graph; and in every graph the gates that writes pass. The property `tenant`
// is the name of a tenant, or that of a user with its tenant: see `name_of_group`.

// name: list_since(version)
// Return the version of the table of assignments and, if it is another one, all of them.
OPTIONAL MATCH (t:PlacementTable {name: 'tenants'})
WITH coalesce(t.version, 0) AS version
RETURN version, CASE WHEN version = $version THEN null
  ELSE COLLECT { MATCH (p:Placement) RETURN p {name: p.tenant, .graph, .state, .target, .job_id, .version, .report} } END AS assignments

// name: assign(tenant, properties, now)
// Change an assignment, and the version of the table, which every process compares.
MERGE (t:PlacementTable {name: 'tenants'})
SET t.version = coalesce(t.version, 0) + 1
MERGE (p:Placement {tenant: $tenant})
SET p += $properties, p.version = t.version, p.changed_at = $now
RETURN p {name: p.tenant, .graph, .state, .target, .job_id, .version, .report} AS assignment

// name: begin(tenant, graph, stored, target, job_id, now)
// Assign a move to who does not move; no row is returned for a move already under way, by another job. A user who lives with the
// tenant has no graph.
MERGE (t:PlacementTable {name: 'tenants'})
SET t.version = coalesce(t.version, 0) + 1
MERGE (p:Placement {tenant: $tenant})
ON CREATE SET p.graph = $stored, p.state = 'settled'
WITH t, p WHERE coalesce(p.graph, $graph) = $graph AND (p.state = 'settled' OR p.job_id = $job_id)
SET p.state = 'copying', p.target = $target, p.job_id = $job_id, p.version = t.version, p.changed_at = $now
RETURN p {name: p.tenant, .graph, .state, .target, .job_id, .version, .report} AS assignment

// name: check_gates(names)
// Return the states of gates: open for one that was closed and has run out; and whether users of the tenant live apart.
MATCH (g:PlacementGate) WHERE g.tenant IN $names
RETURN g.tenant AS name, CASE WHEN g.state = 'closed' AND g.until < timestamp() THEN 'noting' ELSE g.state END AS state,
       coalesce(g.is_divided, false) AS is_divided

// name: is_any_user_switched(prefix)
// Return whether the gate of a user of a tenant is closed.
RETURN EXISTS {
  MATCH (g:PlacementGate) WHERE g.tenant STARTS WITH $prefix AND g.state = 'closed' AND g.until >= timestamp()
} AS is_any

// name: divide(tenant)
// Have every write of a tenant find out that its users live in several graphs.
MERGE (g:PlacementGate {tenant: $tenant})
SET g.is_divided = true

// name: remove_gates_of_users(prefix)
// Remove the gates of the users of a tenant, who come with it.
MATCH (g:PlacementGate) WHERE g.tenant STARTS WITH $prefix
DELETE g

// name: note_changes(tenant, group_ids)
// Note the groups that a transaction of a tenant that moves has written to; an empty one stands for the tenant itself.
UNWIND $group_ids AS group_id
CREATE (:PlacedChange {tenant: $tenant, group_id: group_id})

// name: take_gate(tenant, state, job_id, attempt)
// Take the gate of a tenant for an attempt at a move; no row is returned when an earlier attempt of the job has left.
MERGE (g:PlacementGate {tenant: $tenant})
SET g.asked = timestamp()
WITH g WHERE g.state IS NULL OR g.state <> 'left' OR g.job_id <> $job_id
SET g.state = $state, g.job_id = $job_id, g.attempt = $attempt, g.until = null
RETURN g.state AS state

// name: close_gate(tenant, attempt, milliseconds)
// Have the writes of a tenant wait, at most for some time; no row is returned when another attempt has the gate.
MATCH (g:PlacementGate {tenant: $tenant}) WHERE g.attempt = $attempt AND g.state IN ['noting', 'closed']
SET g.state = 'closed', g.until = timestamp() + $milliseconds
RETURN g.until AS until

// name: reopen_gate(tenant, attempt)
// Let the writes of a tenant go on, which note what they change.
MATCH (g:PlacementGate {tenant: $tenant}) WHERE g.attempt = $attempt AND g.state = 'closed'
SET g.state = 'noting', g.until = null

// name: leave(tenant, attempt, milliseconds)
// Refuse all further writes of a tenant; no row is returned unless the gate stays closed for so long at least.
MATCH (g:PlacementGate {tenant: $tenant})
SET g.asked = timestamp()
WITH g WHERE g.attempt = $attempt AND g.state = 'closed' AND g.until > timestamp() + $milliseconds
SET g.state = 'left', g.until = null
RETURN g.state AS state

// name: remove_gate(tenant, job_id)
// Remove the gate of a move from a graph, which then takes the writes of the tenant.
MATCH (g:PlacementGate {tenant: $tenant}) WHERE g.job_id = $job_id
DELETE g

// name: list_writers(tenant)
// List the open transactions that write for a tenant.
SHOW TRANSACTIONS YIELD transactionId, metaData
WHERE metaData.graphmem_tenant = $tenant
RETURN transactionId AS id

// name: list_changes(tenant, limit)
// List what was noted of a tenant that moves.
MATCH (c:PlacedChange {tenant: $tenant})
RETURN elementId(c) AS id, c.group_id AS group_id LIMIT $limit

// name: delete_changes(ids)
// Delete what was noted and has been copied.
MATCH (c:PlacedChange) WHERE elementId(c) IN $ids
DELETE c

// name: delete_all_changes(tenant)
// Delete all that was noted of a tenant.
MATCH (c:PlacedChange {tenant: $tenant}) DELETE c

// name: list_tenants()
// List the tenants with users in this graph by name. A user who is erased meanwhile is read without a tenant.
MATCH (u:User)
WITH DISTINCT u.tenant AS tenant WHERE tenant IS NOT NULL
RETURN tenant ORDER BY tenant
