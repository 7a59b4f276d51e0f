// Webhooks: addresses that receive the changes of a tenant's users, and the position of each one in the changes of a user.

// name: create(properties)
// Create a webhook.
CREATE (w:Webhook) SET w = $properties

// name: find(webhook_id)
// Find a webhook.
MATCH (w:Webhook {id: $webhook_id}) RETURN w {.*} AS webhook

// name: list_of_tenant(tenant)
// List the webhooks of a tenant, oldest first.
MATCH (w:Webhook {tenant: $tenant}) RETURN w {.*} AS webhook ORDER BY w.created_at, w.id

// name: list_enabled()
// List the webhooks of all tenants that are not disabled.
MATCH (w:Webhook) WHERE w.disabled_at IS NULL RETURN w {.*} AS webhook ORDER BY w.created_at, w.id

// name: remove(tenant, webhook_id)
// Remove a webhook of a tenant and its positions; no row is returned when there is none.
MATCH (w:Webhook {id: $webhook_id}) WHERE w.tenant = $tenant
OPTIONAL MATCH (c:WebhookCursor {webhook_id: $webhook_id})
WITH w, collect(c) AS cursors
FOREACH (c IN cursors | DELETE c)
DELETE w
RETURN $webhook_id AS id

// name: forget_user(tenant, user_id, now)
// Remove a user from the webhooks that name them; one that names nobody else is disabled. Return the webhooks.
MATCH (w:Webhook {tenant: $tenant}) WHERE $user_id IN w.users
SET w.users = [user IN w.users WHERE user <> $user_id]
WITH w, w.users = [] AND w.disabled_at IS NULL AS is_unused
SET w.disabled_at = CASE WHEN is_unused THEN $now ELSE w.disabled_at END,
    w.disabled_reason = CASE WHEN is_unused THEN 'all its users were forgotten' ELSE w.disabled_reason END
RETURN w.id AS id

// name: list_behind(webhook_id, tenant, user_ids, changed_after, limit)
// List users whose memories were written since the webhook was last up to date with them, the longest ago first.
MATCH (u:User) WHERE u.tenant = $tenant AND u.last_write_at >= $changed_after
  AND ($user_ids IS NULL OR u.user_id IN $user_ids OR u.user_id = '')
  AND NOT EXISTS { MATCH (:Erasure {group_id: u.group_id}) }
OPTIONAL MATCH (c:WebhookCursor {webhook_id: $webhook_id, group_id: u.group_id})
WITH u, c WHERE c.complete_until IS NULL OR c.complete_until <> u.last_write_at
RETURN u.group_id AS group_id, u.last_write_at AS last_write_at, c.at AS at, c.key AS key
ORDER BY last_write_at, group_id LIMIT $limit

// name: advance(webhook_id, group_id, at, key, complete_until, delivered_at, status)
// Store the last change of a user that a webhook has delivered or left out; no row is returned for a webhook that was removed.
MATCH (w:Webhook {id: $webhook_id})
SET w.last_delivered_at = coalesce($delivered_at, w.last_delivered_at), w.last_status = coalesce($status, w.last_status)
MERGE (c:WebhookCursor {webhook_id: $webhook_id, group_id: $group_id})
SET c.at = $at, c.key = $key, c.complete_until = $complete_until
RETURN w.id AS id

// name: record_failure(webhook_id, status, error, now)
// Store that a delivery failed, and return since when deliveries fail and how many have failed since.
MATCH (w:Webhook {id: $webhook_id})
SET w.last_status = $status, w.last_error = $error, w.failures = w.failures + 1,
    w.failing_since = coalesce(w.failing_since, $now)
RETURN w.failing_since AS failing_since, w.failures AS failures

// name: record_skipped(webhook_id, reason)
// Store that a change was left out because it cannot be sent.
MATCH (w:Webhook {id: $webhook_id}) SET w.skipped = coalesce(w.skipped, 0) + 1, w.last_skipped = $reason

// name: record_complete(webhook_id, checked_at)
// Store that everything written before a time was delivered.
MATCH (w:Webhook {id: $webhook_id})
SET w.checked_at = $checked_at, w.failures = 0, w.failing_since = null, w.last_error = null

// name: disable(webhook_id, reason, now)
// Disable a webhook for a reason.
MATCH (w:Webhook {id: $webhook_id}) SET w.disabled_at = $now, w.disabled_reason = $reason
