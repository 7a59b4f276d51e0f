// What a tenant wants remembered, in words that its admin chose; prompts show them.

// name: find(tenant)
// Find the instructions of a tenant.
MATCH (i:TenantInstructions {tenant: $tenant}) RETURN i {.text, .updated_at, .updated_by} AS instructions

// name: replace(tenant, text, now, actor)
// Set the instructions of a tenant.
MERGE (i:TenantInstructions {tenant: $tenant})
SET i.text = $text, i.updated_at = $now, i.updated_by = $actor

// name: remove(tenant)
// Remove the instructions of a tenant.
MATCH (i:TenantInstructions {tenant: $tenant}) DELETE i
