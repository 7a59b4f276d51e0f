// Forgetting users: the mark that an erasure is under way, and the erasure itself, a bounded part in each transaction.

// name: join(group_id)
// Return the id of the erasure of a user that has begun and not ended.
MATCH (e:Erasure {group_id: $group_id})
SET e.active_at = datetime()
WITH e WHERE e.id IS NOT NULL
RETURN e.id AS id

// name: begin(group_id, tenant, user_id, now)
// Mark a user as being forgotten, under the user's lock, and return the id of the erasure.
OPTIONAL MATCH (known:User {group_id: $group_id})
WITH count(known) AS users
MERGE (u:User {group_id: $group_id})
ON CREATE SET u.tenant = $tenant, u.user_id = $user_id, u.created_at = $now, u.life = randomUUID(), u.write_version = 0
SET u.write_version = u.write_version + 1
MERGE (e:Erasure {group_id: $group_id})
ON CREATE SET e.id = randomUUID(), e.started_at = $now, e.users = users, e.erased = '{}'
SET e.active_at = datetime()
RETURN e.id AS id

// name: continue(group_id, erasure_id)
// Lock an erasure, so that two processes take turns at it, and return what it has erased; no row when it has ended.
MATCH (e:Erasure {group_id: $group_id}) WHERE e.id = $erasure_id
SET e.active_at = datetime()
WITH e WHERE e.erased IS NOT NULL
RETURN e.erased AS erased, e.users AS users, e.started_at AS started_at

// name: erase_elements(group_id, shared_group, limit)
// Erase up to a number of facts and nodes of a user; count them by kind.
CALL () {
  {{elements_of_user}}
}
WITH element, kind LIMIT $limit
DETACH DELETE element
RETURN kind, count(*) AS erased

// name: record_progress(group_id, erased)
// Store what an erasure has erased so far, as JSON.
MATCH (e:Erasure {group_id: $group_id}) SET e.erased = $erased

// name: end(group_id)
// Erase the user's own node and the mark.
MATCH (e:Erasure {group_id: $group_id})
MATCH (u:User {group_id: $group_id})
DETACH DELETE u, e

// name: count_residue(group_id, shared_group)
// Count what is left of a user in the graph.
RETURN COUNT { {{elements_of_user}} }
     + COUNT { MATCH (:User {group_id: $group_id}) } + COUNT { MATCH (:Erasure {group_id: $group_id}) } AS residue

// name: list_begun()
// List the users whose erasure has begun and not ended.
MATCH (e:Erasure) RETURN e.group_id AS group_id

// name: list_interrupted(idle_seconds)
// List the users whose erasure has not made progress for a number of seconds.
MATCH (e:Erasure) WHERE e.active_at < datetime() - duration({seconds: $idle_seconds})
RETURN e.group_id AS group_id ORDER BY group_id

// name: find_extractions(group_id, ids)
// Find the records of extraction that contain the ids of some entities.
MATCH (x:Extraction {group_id: $group_id}) WHERE any(id IN $ids WHERE x.actions CONTAINS id OR x.links CONTAINS id)
RETURN x.extraction_id AS id, x.actions AS actions, x.links AS links

// name: set_extraction(group_id, id, actions, links)
// Replace the actions and links that extraction recorded.
MATCH (x:Extraction {group_id: $group_id, extraction_id: $id})
SET x.actions = $actions, x.links = $links
