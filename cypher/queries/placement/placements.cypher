// In which graph tenants live, in the home graph; and in the graphs that a tenant moves from or to, the barrier of its writes.
// Each attempt to move a tenant has a larger number than the ones before; whoever has an earlier one changes nothing any more.

// name: list_since(version)
// Return the version of the table of locations and, if it is another one, all of them.
OPTIONAL MATCH (t:PlacementTable {name: 'tenants'})
WITH coalesce(t.version, 0) AS version
RETURN version, CASE WHEN version = $version THEN null
  ELSE COLLECT { MATCH (p:Placement) RETURN {{location}} } END AS locations

// name: record_job(tenant, graph, target, job_id, former_job_id, now)
// Record which job is about to move a tenant, and where to; no row is returned when another job was recorded meanwhile.
{{change_locations}}
MERGE (p:Placement {tenant: $tenant})
ON CREATE SET p.graph = 'home', p.attempt = 0
SET p.changed_at = $now
WITH p WHERE p.graph = $graph AND coalesce(p.job_id, '') = $former_job_id
SET p.state = 'settled', p.target = $target, p.job_id = $job_id
RETURN p.job_id AS job_id

// name: begin(tenant, graph, target, job_id, now)
// Begin an attempt to move a tenant that lives in a graph; no row is returned while another job moves it.
{{change_locations}}
MERGE (p:Placement {tenant: $tenant})
ON CREATE SET p.graph = 'home', p.attempt = 0, p.state = 'settled'
SET p.changed_at = $now
WITH p WHERE p.graph = $graph AND (p.state = 'settled' OR p.job_id = $job_id)
SET p.state = 'copying', p.target = $target, p.job_id = $job_id, p.attempt = p.attempt + 1
RETURN p.attempt AS attempt

// name: set_state(tenant, attempt, state)
// Set how far an attempt has come; no row is returned when it is not the latest one.
{{change_locations}}
WITH t
MATCH (p:Placement {tenant: $tenant})
SET p.state = p.state
WITH p WHERE p.attempt = $attempt AND p.target IS NOT NULL
SET p.state = $state
RETURN p.state AS state

// name: switch(tenant, attempt, report, now)
// Let a tenant live in the graph that it moves to; no row is returned when the attempt is not the latest one.
{{change_locations}}
WITH t
MATCH (p:Placement {tenant: $tenant})
SET p.changed_at = $now
WITH p WHERE p.attempt = $attempt AND p.state = 'switching'
SET p.graph = p.target, p.target = null, p.state = 'settled', p.report = $report
RETURN p.graph AS graph

// name: give_up(tenant, graph, job_id)
// Leave a tenant in the graph where it lives, and return the number of an attempt that can erase the copy.
{{change_locations}}
WITH t
MATCH (p:Placement {tenant: $tenant})
SET p.state = p.state
WITH p WHERE p.graph = $graph AND p.job_id = $job_id
SET p.state = 'settled', p.target = null, p.attempt = p.attempt + 1
RETURN p.attempt AS attempt

// name: withdraw(tenant, graph, attempt)
// Withdraw an attempt to move a tenant from a graph, because its barrier has ended; return where the tenant lives.
MATCH (p:Placement {tenant: $tenant})
SET p.state = p.state
WITH p
SET p.attempt = CASE WHEN p.graph = $graph AND p.attempt = $attempt THEN p.attempt + 1 ELSE p.attempt END
RETURN p.graph AS graph

// name: find_barrier(tenant, now)
// Return whether the barrier of a tenant lets its writes pass, and has them counted; one that is closed until a time has ended
// then.
MATCH (b:WriteBarrier {tenant: $tenant})
RETURN b.attempt AS attempt, CASE
  WHEN b.until IS NULL THEN 'open' WHEN b.until < 0 THEN 'counting' WHEN b.until > $now THEN 'closed' ELSE 'ended' END AS state

// name: set_barrier(tenant, attempt, until)
// Close the barrier of a tenant until a time, open it with null, or have writes counted with -1; no row is returned when a later
// attempt has it.
MERGE (b:WriteBarrier {tenant: $tenant})
ON CREATE SET b.attempt = $attempt
SET b.attempt = b.attempt
WITH b WHERE b.attempt <= $attempt
SET b.attempt = $attempt, b.until = $until
RETURN b.attempt AS attempt

// name: check_barrier(tenant, attempt)
// Return a row when an attempt has the barrier of a tenant.
MATCH (b:WriteBarrier {tenant: $tenant}) WHERE b.attempt = $attempt
RETURN b.attempt AS attempt

// name: count_write(group_ids)
// Count a write to groups that did not lock them, so that a move finds it.
MATCH (u:User) WHERE u.group_id IN $group_ids
SET u.revision = coalesce(u.revision, 0) + 1

// name: list_writers(tenant)
// List the open transactions that write for a tenant.
SHOW TRANSACTIONS YIELD transactionId, metaData
WHERE metaData.graphmem_tenant = $tenant
RETURN transactionId AS id

// name: list_tenants()
// List the tenants with users in this graph by name. A user who is erased meanwhile is read without a tenant.
MATCH (u:User)
WITH DISTINCT u.tenant AS tenant WHERE tenant IS NOT NULL
RETURN tenant ORDER BY tenant
