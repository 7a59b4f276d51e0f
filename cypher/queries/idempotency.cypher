// Idempotent requests: one node per tenant, route and key, with the first response or the lease of its execution.

// name: claim(tenant, route, key, owner_group, contains_user_text, fingerprint, token, now, oldest, lease_until)
// Claim a request unless it has a response or a valid lease; the first SET locks the node before it is examined.
MERGE (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key})
SET i.asked = $token
WITH i, i.token IS NULL OR i.created_at < $oldest
        OR (i.status IS NULL AND i.lease_until < $now AND i.fingerprint = $fingerprint) AS free
FOREACH (_ IN CASE WHEN free THEN [1] ELSE [] END |
  SET i.token = $token, i.owner_group = $owner_group, i.contains_user_text = $contains_user_text,
      i.fingerprint = $fingerprint, i.created_at = $now, i.lease_until = $lease_until, i.status = null, i.media_type = null, i.body = null, i.encrypted = null)
RETURN free AS is_acquired, i {.fingerprint, .status, .media_type, .body, .encrypted} AS request

// name: renew_lease(tenant, route, key, token, lease_until)
// Extend the lease of a request that is still being executed.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.token = $token AND i.status IS NULL
SET i.lease_until = $lease_until

// name: complete(tenant, route, key, token, status, media_type, body, encrypted)
// Store the first response.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.token = $token
SET i.status = $status, i.media_type = $media_type, i.body = $body, i.encrypted = $encrypted, i.lease_until = null

// name: release(tenant, route, key, token)
// Delete a request that failed, so that its repetition is executed.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.token = $token AND i.status IS NULL
DELETE i

// name: delete_expired(oldest)
// Erase the requests that are past their retention.
MATCH (i:IdempotentRequest) WHERE i.created_at < $oldest
DELETE i RETURN count(*) AS erased

// name: erase_user(tenant, owner_group, shared_group)
// Delete the requests of a user and the tenant-wide responses that may contain the user's text.
MATCH (i:IdempotentRequest) WHERE i.owner_group IN [$owner_group, $shared_group] AND i.tenant = $tenant
  AND (i.owner_group = $owner_group OR i.status IS NOT NULL AND i.contains_user_text)
DELETE i RETURN count(*) AS erased

// name: clear_responses(tenant, owner_groups, needle)
// Remove the responses that contain an id; the requests stay, so that they are not executed again.
MATCH (i:IdempotentRequest {tenant: $tenant}) WHERE i.owner_group IN $owner_groups AND i.body CONTAINS $needle
SET i.status = 410, i.media_type = null, i.body = null
RETURN count(*) AS cleared
