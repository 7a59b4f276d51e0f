// Quarantine: statements that extraction has kept from the memories, until an admin releases or drops them.

// name: put(group_id, tenant, rows, now)
// Put statements into the quarantine of a user or a space; one that is there already is counted once more.
UNWIND $rows AS row
MERGE (q:QuarantinedStatement {group_id: $group_id, content_hash: row.content_hash})
ON CREATE SET q.id = row.id, q.tenant = $tenant, q.first_seen_at = $now, q.times_seen = 0
SET q += row.properties, q.times_seen = q.times_seen + 1, q.last_seen_at = $now
RETURN row.position AS position, q.id AS id

// name: mark_messages(group_id, message_ids)
// Mark messages of which something was caught: no context quotes them, and no search takes them for evidence.
MATCH (u:User {group_id: $group_id})
UNWIND $message_ids AS message_id
MATCH (m:Episodic {group_id: $group_id, message_id: message_id})
SET m.caught = true, m.revision = u.revision

// name: list_page(tenant, of_groups, after_at, after_id, limit)
// List the statements in quarantine of a tenant, or only those of some groups if any are given, the latest first.
MATCH (q:QuarantinedStatement {tenant: $tenant})
WHERE (size($of_groups) = 0 OR q.group_id IN $of_groups)
  AND NOT EXISTS { MATCH (:Erasure {group_id: q.group_id}) }
  AND ($after_at IS NULL OR q.last_seen_at < $after_at OR (q.last_seen_at = $after_at AND q.id > $after_id))
RETURN q {.*} AS statement ORDER BY q.last_seen_at DESC, q.id LIMIT $limit

// name: find(tenant, id)
// Find a statement in quarantine.
MATCH (q:QuarantinedStatement {id: $id}) WHERE q.tenant = $tenant
  AND NOT EXISTS { MATCH (:Erasure {group_id: q.group_id}) }
RETURN q {.*} AS statement

// name: remove(tenant, id)
// Remove a statement from the quarantine; no row is returned when it is not there.
MATCH (q:QuarantinedStatement {id: $id}) WHERE q.tenant = $tenant
WITH q, q.id AS id
DELETE q
RETURN id
