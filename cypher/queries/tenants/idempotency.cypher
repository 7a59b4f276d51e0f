// Idempotent requests: one node per tenant, route and key, with the first response or the lease of its execution.

// name: claim(tenant, route, key, owner_group, contains_user_text, fingerprint, token, now, oldest, lease_until)
// Claim a request unless it has a response or a valid lease; the first SET locks the node before it is examined.
// A claim that runs again finds its own token.
// The result of a write stays, so that whoever claims the request next does not write again.
MERGE (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key})
SET i.asked = $token
WITH i, i.token IS NULL OR i.token = $token OR i.created_at < $oldest
        OR (i.status IS NULL AND i.lease_until < $now AND i.fingerprint = $fingerprint) AS free,
     CASE WHEN i.created_at >= $oldest THEN i.result END AS result
FOREACH (_ IN CASE WHEN free THEN [1] ELSE [] END |
  SET i.token = $token, i.owner_group = $owner_group, i.contains_user_text = $contains_user_text,
      i.fingerprint = $fingerprint, i.created_at = $now, i.lease_until = $lease_until, i.status = null, i.media_type = null, i.body = null, i.encrypted = null, i.headers = null,
      i.result = result)
RETURN free AS is_acquired, i {.fingerprint, .status, .media_type, .body, .encrypted, .headers} AS request

// name: renew_lease(tenant, route, key, owner_group, token, lease_until)
// Extend the lease of a request that is still being executed.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.owner_group = $owner_group AND i.token = $token
  AND i.status IS NULL
SET i.lease_until = $lease_until

// name: complete(tenant, route, key, owner_group, token, status, media_type, body, encrypted, headers)
// Store the first response.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.owner_group = $owner_group AND i.token = $token
SET i.status = $status, i.media_type = $media_type, i.body = $body, i.encrypted = $encrypted, i.headers = $headers,
    i.lease_until = null, i.result = null

// name: release(tenant, route, key, owner_group, token)
// Let the repetition of a request that failed be executed: end its lease if it has written something, else delete it.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.owner_group = $owner_group AND i.token = $token
  AND i.status IS NULL
WITH i, i.result IS NOT NULL AS has_written
FOREACH (_ IN CASE WHEN has_written THEN [1] ELSE [] END | SET i.lease_until = datetime({epochSeconds: 0}))
FOREACH (_ IN CASE WHEN has_written THEN [] ELSE [1] END | DELETE i)

// name: find_result(tenant, route, key, owner_group)
// Lock a request until the transaction ends and return the result that its write stored, or null.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.owner_group = $owner_group
SET i.asked = randomUUID()
RETURN i.result AS result

// name: store_result(tenant, route, key, owner_group, result)
// Store the result of a write with what it wrote.
MATCH (i:IdempotentRequest {tenant: $tenant, route: $route, key: $key}) WHERE i.owner_group = $owner_group
SET i.result = $result

// name: delete_expired(tenant, oldest)
// Erase the requests of a tenant, or of all tenants, that are past their retention.
MATCH (i:IdempotentRequest) WHERE i.created_at < $oldest AND ($tenant IS NULL OR i.tenant = $tenant)
DELETE i RETURN count(*) AS erased

// name: clear_responses(tenant, owner_groups, needle)
// Remove the responses that contain an id; the requests stay, so that they are not executed again.
MATCH (i:IdempotentRequest {tenant: $tenant}) WHERE i.owner_group IN $owner_groups AND (i.body CONTAINS $needle OR i.result CONTAINS $needle)
SET i.status = 410, i.media_type = null, i.body = null, i.headers = null, i.result = null
RETURN count(*) AS cleared

// name: clear_responses_of_tenant(tenant, needle)
// Remove the responses of a tenant's users that contain a text; the requests stay, so that they are not executed again.
MATCH (i:IdempotentRequest) WHERE i.tenant = $tenant AND (i.body CONTAINS $needle OR i.result CONTAINS $needle)
SET i.status = 410, i.media_type = null, i.body = null, i.headers = null, i.result = null
RETURN count(*) AS cleared
