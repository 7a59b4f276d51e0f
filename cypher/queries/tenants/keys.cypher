// API keys: only the SHA-256 of a key is stored; a revoked key stays as a record of who acted.

// name: create(properties)
// Create a key.
CREATE (k:ApiKey) SET k = $properties

// name: find_by_hash(hash)
// Find a key by its hash, unless it is revoked.
MATCH (k:ApiKey {hash: $hash}) WHERE k.revoked_at IS NULL RETURN k {.*, hash: null} AS key

// name: list_keys(tenant)
// List the keys of a tenant that are not revoked, oldest first.
MATCH (k:ApiKey {tenant: $tenant}) WHERE k.revoked_at IS NULL
RETURN k {.*, hash: null} AS key ORDER BY k.created_at, k.id

// name: forget_user(tenant, user_id, now)
// Remove a user from the keys that name them; one that names nobody else is revoked. Return the keys.
MATCH (k:ApiKey {tenant: $tenant}) WHERE $user_id IN k.users
SET k.users = [user IN k.users WHERE user <> $user_id]
SET k.revoked_at = CASE WHEN k.users = [] THEN coalesce(k.revoked_at, $now) ELSE k.revoked_at END
RETURN k.id AS id, k.users = [] AS is_revoked

// name: revoke(tenant, key_id, now)
// Revoke a key of a tenant; no row is returned when there is none or it is revoked already.
MATCH (k:ApiKey {tenant: $tenant}) WHERE k.id = $key_id AND k.revoked_at IS NULL
SET k.revoked_at = $now
RETURN k.id AS id
