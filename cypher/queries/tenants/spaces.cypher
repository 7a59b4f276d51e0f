// Spaces: the node of a group that several users and keys share, and a `SpaceMember` node for each of these. `member` is the
// group id of a user, or the tenant and the id of a key.

// name: put(group_id, tenant, user_id, title, about, source_kind, now)
// Create a space or change its title and what belongs there; no row is returned while it is being deleted.
UNWIND CASE WHEN EXISTS { MATCH (:Erasure {group_id: $group_id}) } THEN [] ELSE [1] END AS permitted
MERGE (s:User {group_id: $group_id})
ON CREATE SET s:SharedSpace, s.tenant = $tenant, s.user_id = $user_id, s.created_at = $now, s.life = randomUUID(), s.write_version = 0
SET s.title = $title, s.about = $about, s.source_kind = $source_kind, s.updated_at = $now
RETURN s.group_id AS group_id

// name: set_members(group_id, rows, now)
// Give members their roles, if the space exists.
MATCH (s:User {group_id: $group_id})
SET s.updated_at = $now
WITH s
UNWIND $rows AS row
MERGE (m:SpaceMember {group_id: s.group_id, member: row.member})
ON CREATE SET m.created_at = $now
SET m += row.properties

// name: remove_others(group_id, members)
// Remove the members of a space that are not among some.
MATCH (m:SpaceMember {group_id: $group_id}) WHERE NOT m.member IN $members
DELETE m

// name: remove_member(group_id, member)
// Remove a member of a space.
MATCH (m:SpaceMember {group_id: $group_id, member: $member})
DELETE m

// name: remove_key(member)
// Remove a key from all spaces.
MATCH (m:SpaceMember {member: $member})
DELETE m

// name: list_spaces(group_ids)
// Fetch spaces with their members, by id.
MATCH (s:User) WHERE s.group_id IN $group_ids AND NOT EXISTS { MATCH (:Erasure {group_id: s.group_id}) }
RETURN {{space_columns}} ORDER BY s.user_id

// name: list_all(tenant)
// Fetch the spaces of a tenant with their members, by id.
MATCH (s:SharedSpace {tenant: $tenant}) WHERE NOT EXISTS { MATCH (:Erasure {group_id: s.group_id}) }
RETURN {{space_columns}} ORDER BY s.user_id
