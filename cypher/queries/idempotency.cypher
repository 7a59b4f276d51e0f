// Idempotent requests: one node for each key of a tenant and route; it holds the first answer, or who is at work on it.

// name: claim(tenant, route, key, owner_group, contains_user_text, fingerprint, token, now, oldest, lease_until)
// Take a request up unless it was answered or is being worked on; the first SET locks the node before it is judged.
MERGE (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key})
SET i.asked = $token
WITH i, i.token IS NULL OR i.created_at < $oldest
        OR (i.status IS NULL AND i.lease_until < $now AND i.fingerprint = $fingerprint) AS free
FOREACH (_ IN CASE WHEN free THEN [1] ELSE [] END |
  SET i.token = $token, i.owner_group = $owner_group, i.contains_user_text = $contains_user_text, i.fingerprint = $fingerprint, i.created_at = $now,
      i.lease_until = $lease_until, i.status = null, i.media_type = null, i.body = null, i.encrypted = null)
RETURN free AS is_acquired, i {.fingerprint, .status, .media_type, .body, .encrypted} AS request

// name: renew_lease(tenant, route, key, token, lease_until)
// Tell that the request is still being worked on.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.token = $token AND i.status IS NULL
SET i.lease_until = $lease_until

// name: complete(tenant, route, key, token, status, media_type, body, encrypted)
// Keep the first answer.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.token = $token
SET i.status = $status, i.media_type = $media_type, i.body = $body, i.encrypted = $encrypted, i.lease_until = null

// name: release(tenant, route, key, token)
// Let go of a request that came to nothing, so that the next try begins anew.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.token = $token AND i.status IS NULL
DELETE i

// name: delete_expired(oldest)
// Erase the requests that are past their retention.
MATCH (i:IdempotentRequest) WHERE i.created_at < $oldest
DELETE i RETURN count(*) AS erased

// name: erase_user(tenant, owner_group, shared_group)
// Erase what was answered to or about a user; answers of the whole tenant may hold the user's text and go too.
MATCH (i:IdempotentRequest {tenant: $tenant})
WHERE i.owner_group = $owner_group OR (i.owner_group = $shared_group AND i.status IS NOT NULL AND i.contains_user_text)
DELETE i RETURN count(*) AS erased

// name: clear_responses(tenant, owner_groups, needle)
// Erase the answers that hold the id of a memory that was erased; the requests stay, so that they are not done again.
MATCH (i:IdempotentRequest {tenant: $tenant}) WHERE i.owner_group IN $owner_groups AND i.body CONTAINS $needle
SET i.status = 410, i.media_type = null, i.body = null
RETURN count(*) AS blanked
