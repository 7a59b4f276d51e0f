// API keys: only the SHA-256 of a key is kept; a revoked one stays as a record of who acted.

// name: create(properties)
// Keep a new key.
CREATE (k:ApiKey) SET k = $properties

// name: find_by_hash(hash)
// Find the key of a hash unless it is revoked.
MATCH (k:ApiKey {hash: $hash}) WHERE k.revoked_at IS NULL RETURN k {.*, hash: null} AS key

// name: list_keys(tenant)
// List a tenant's keys that are not revoked, oldest first.
MATCH (k:ApiKey {tenant: $tenant}) WHERE k.revoked_at IS NULL
RETURN k {.*, hash: null} AS key ORDER BY k.created_at, k.id

// name: revoke(tenant, key_id, now)
// Revoke a key of a tenant; no row when there is none that could be.
MATCH (k:ApiKey {tenant: $tenant}) WHERE k.id = $key_id AND k.revoked_at IS NULL
SET k.revoked_at = $now
RETURN k.id AS id
