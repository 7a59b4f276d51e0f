// Users: the node that every write locks, so that the writes of one user happen one after the other.
// A user who is being forgotten has an `Erasure` node. It is looked for before the lock, so that writers do not queue for
// a user whose erasure is under way, and after it, because the erasure may have begun while a writer waited.
// A node that was deleted while a query waited for its lock has no properties.

// A transaction that has locked a user has a revision of its own, `u.revision`, which whatever it changes of facts, entities
// and messages gets; so what changed after a revision is found by an index. `u.removal_revision` is that of the latest one
// that removed some.

// name: lock(group_id, count, removes)
// Lock a user for this transaction, begin a revision, add to their write counter and return the time of their latest write.
MATCH (u:User {group_id: $group_id})
WHERE NOT EXISTS { MATCH (:Erasure {group_id: $group_id}) }
SET u.write_version = u.write_version + $count, u.revision = coalesce(u.revision, 0) + 1,
    u.removal_revision = CASE WHEN $removes THEN coalesce(u.revision, 0) + 1 ELSE coalesce(u.removal_revision, 0) END
WITH u WHERE u.write_version IS NOT NULL
RETURN coalesce(u.life, u.group_id) AS life, u.revision AS revision, u.last_write_at AS last_write_at,
  EXISTS { MATCH (:Erasure {group_id: $group_id}) } AS is_being_forgotten

// name: lock_or_create(group_id, tenant, user_id, now)
// Lock a user for this transaction, creating them if needed, begin a revision, count the write and return the time of their
// latest one.
UNWIND CASE WHEN EXISTS { MATCH (:Erasure {group_id: $group_id}) } THEN [] ELSE [1] END AS permitted
MERGE (u:User {group_id: $group_id})
ON CREATE SET u.tenant = $tenant, u.user_id = $user_id, u.created_at = $now, u.life = randomUUID(), u.write_version = 0
SET u.write_version = u.write_version + 1, u.revision = coalesce(u.revision, 0) + 1
RETURN coalesce(u.life, u.group_id) AS life, u.revision AS revision, u.last_write_at AS last_write_at,
  EXISTS { MATCH (:Erasure {group_id: $group_id}) } AS is_being_forgotten

// name: wait_for_writer(group_id)
// Wait until the transaction that holds the lock of a user is applied in full, and return its revision.
MATCH (u:User {group_id: $group_id})
SET u.tenant = u.tenant
WITH u WHERE u.write_version IS NOT NULL
RETURN coalesce(u.life, u.group_id) AS life, coalesce(u.revision, 0) AS revision

// name: is_being_forgotten(group_id)
// Return whether the erasure of a user has begun and not ended.
RETURN EXISTS { MATCH (:Erasure {group_id: $group_id}) } AS is_being_forgotten

// name: get_life(group_id)
// Return the random id of the life of a user.
MATCH (u:User {group_id: $group_id})
RETURN coalesce(u.life, u.group_id) AS life

// name: get_persona(group_id)
// Return the persona of a user as JSON, and who set it.
MATCH (u:User {group_id: $group_id})
RETURN u.persona AS persona, coalesce(u.persona_source_kind, 'user') AS persona_source_kind

// name: set_persona(group_id, persona, persona_source_kind)
// Set the persona of a user, as JSON; null removes it.
MATCH (u:User {group_id: $group_id})
SET u.persona = $persona, u.persona_source_kind = $persona_source_kind

// name: get_states(group_ids, members, allowed)
// Return what reads need to know first of groups, and of the spaces in which members have a role: of those that are allowed,
// or of all when it is null. The values are in the order of `GroupState`.
CALL () {
  UNWIND $group_ids AS group_id
  RETURN group_id, [] AS roles
  UNION ALL
  MATCH (m:SpaceMember) WHERE m.member IN $members AND ($allowed IS NULL OR m.group_id IN $allowed)
  WITH m {.group_id, .role} AS member
  WHERE member.role IS NOT NULL AND NOT EXISTS { MATCH (:Erasure {group_id: member.group_id}) }
  RETURN member.group_id AS group_id, collect(member.role) AS roles
}
MATCH (u:User {group_id: group_id})
OPTIONAL MATCH (t:TenantTrust {tenant: u.tenant})
WITH u, roles, t ORDER BY u.group_id
RETURN collect([u.group_id, coalesce(u.life, u.group_id), u.write_version, coalesce(u.revision, 0),
  coalesce(u.removal_revision, 0), u.persona, u.last_write_at.epochSeconds * 1000000 + u.last_write_at.microsecond, roles, u.title, t.order])
  AS found

// name: list_owners(tenant, after, limit)
// List users and spaces in the order of their group ids: of one tenant, or of all when it is null. Those being forgotten are left out.
MATCH (u:User) WHERE ($tenant IS NULL OR u.tenant = $tenant) AND u.user_id <> '' AND u.group_id > $after
  AND NOT EXISTS { MATCH (:Erasure {group_id: u.group_id}) }
RETURN u.tenant AS tenant, u.user_id AS user_id, u.group_id AS group_id ORDER BY u.group_id LIMIT $limit

// name: list_page(tenant, text, user_ids, after, now, limit)
// List the users of a tenant by id, no spaces, whose id contains a text, with the numbers of their current memories and sessions.
// The index has the users in this order, so that a page reads its own users and not those of the whole tenant.
MATCH (u:User)
WHERE u.tenant = $tenant AND u.user_id > $after AND NOT u.user_id STARTS WITH ' ' AND toLower(u.user_id) CONTAINS $text
  AND ($user_ids IS NULL OR u.user_id IN $user_ids)
WITH u ORDER BY u.tenant, u.user_id
WHERE NOT EXISTS { MATCH (:Erasure {group_id: u.group_id}) }
WITH u LIMIT $limit
RETURN {
  user_id: u.user_id, created_at: u.created_at, last_write_at: u.last_write_at,
  memory_count: COUNT {
    MATCH ()-[r:RELATES_TO {group_id: u.group_id}]->()
    WHERE r.known_to > $now AND r.valid_from <= $now AND r.valid_to > $now AND {{is_statement}}
  },
  session_count: COUNT { MATCH (:Session {group_id: u.group_id}) }
} AS user
ORDER BY user.user_id
