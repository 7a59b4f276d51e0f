// The types of memories and entities that a tenant declares, as JSON.

// name: find(tenant)
// Find the declared types of a tenant.
MATCH (t:TenantTypes {tenant: $tenant}) RETURN t {.memory_types, .entity_types, .updated_at, .updated_by} AS types

// name: replace(tenant, memory_types, entity_types, now, actor)
// Set the declared types of a tenant.
MERGE (t:TenantTypes {tenant: $tenant})
SET t.memory_types = $memory_types, t.entity_types = $entity_types, t.updated_at = $now, t.updated_by = $actor

// name: remove(tenant)
// Remove the declared types of a tenant.
MATCH (t:TenantTypes {tenant: $tenant}) DELETE t
