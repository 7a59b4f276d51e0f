// Which sources a tenant trusts more than others, as JSON.

// name: find(tenant)
// Find the order of trust of a tenant.
MATCH (t:TenantTrust {tenant: $tenant}) RETURN t {.order, .updated_at, .updated_by} AS trust

// name: replace(tenant, order, now, actor)
// Set the order of trust of a tenant.
MERGE (t:TenantTrust {tenant: $tenant})
SET t.order = $order, t.updated_at = $now, t.updated_by = $actor

// name: remove(tenant)
// Remove the order of trust of a tenant.
MATCH (t:TenantTrust {tenant: $tenant}) DELETE t
