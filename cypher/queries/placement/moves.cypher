// The elements of a tenant as they are stored, for moving them to another graph. They belong to a group, which is a user, a
// space or the tenant itself, or to the tenant as a whole.

// name: list_groups(tenant)
// List the groups of a tenant. A user who is erased while this is read has no group any more.
MATCH (u:User {tenant: $tenant})
WITH u.group_id AS group_id WHERE group_id IS NOT NULL
RETURN group_id ORDER BY group_id

// name: is_any_erased(prefix)
// Return whether an erasure of the tenant has begun and not ended.
RETURN EXISTS { MATCH (e:Erasure) WHERE e.group_id STARTS WITH $prefix } AS is_any

// name: list_group(group_id)
// List what a graph has of a group: nodes without vectors in full, of nodes and memories with vectors the revision that tells
// whether they have changed, and the other relationships in full.
RETURN COLLECT {
  CALL () {
    {{plain_nodes_of_group}}
  }
  RETURN [elementId(n), labels(n), properties(n)]
} AS plain, COLLECT {
  CALL () {
    MATCH (n:Entity {group_id: $group_id}) RETURN n, 'Entity' AS label
    UNION ALL
    MATCH (n:Episodic {group_id: $group_id}) RETURN n, 'Episodic' AS label
  }
  RETURN [elementId(n), label, n.uuid, coalesce(n.revision, 0)]
} AS embedded, COLLECT {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
  RETURN [elementId(r), r.uuid, coalesce(r.revision, 0)]
} AS facts, COLLECT {
  CALL () {
    MATCH (n:Entity {group_id: $group_id}) RETURN n
    UNION ALL
    MATCH (n:Episodic {group_id: $group_id}) RETURN n
    UNION ALL
    {{plain_nodes_of_group}}
  }
  MATCH (n)-[r]->(m) WHERE type(r) <> 'RELATES_TO'
  RETURN [elementId(r), type(r), elementId(n), elementId(m), m.uuid, properties(r)]
} AS links

// name: list_of_tenant(tenant, prefix)
// List the nodes that belong to the tenant as a whole.
CALL () {
  MATCH (n:ConsolidationRun) WHERE n.tenant = $tenant AND n.created_at IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:QuarantinedStatement {tenant: $tenant}) RETURN n
  UNION ALL
  MATCH (n:Webhook {tenant: $tenant}) RETURN n
  UNION ALL
  MATCH (n:TenantTypes {tenant: $tenant}) RETURN n
  UNION ALL
  MATCH (n:TenantTrust {tenant: $tenant}) RETURN n
  UNION ALL
  MATCH (n:TenantInstructions {tenant: $tenant}) RETURN n
  UNION ALL
  MATCH (n:IdempotentRequest {tenant: $tenant}) RETURN n
  UNION ALL
  MATCH (n:SpaceMember) WHERE n.group_id STARTS WITH $prefix RETURN n
  UNION ALL
  MATCH (n:WebhookCursor) WHERE n.group_id STARTS WITH $prefix RETURN n
}
RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties

// name: list_of_user(group_id)
// List the nodes of a user among those that are of the tenant as a whole. The memberships in spaces stay with these.
CALL () {
  MATCH (n:ConsolidationRun {group_id: $group_id}) RETURN n
  UNION ALL
  MATCH (n:QuarantinedStatement {group_id: $group_id}) RETURN n
  UNION ALL
  MATCH (n:IdempotentRequest) WHERE n.owner_group = $group_id AND NOT n.key ENDS WITH ' elsewhere' RETURN n
  UNION ALL
  MATCH (n:WebhookCursor {group_id: $group_id}) RETURN n
}
RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties

// name: detach_parts(group_id)
// Let runs over all users name the parts that are of a user, who may then live in another graph.
MATCH (part:ConsolidationRun {group_id: $group_id})
CALL (part) {
  MATCH (part)<-[of:PART]-(run:ConsolidationRun)
  SET run.apart = [id IN coalesce(run.apart, []) WHERE id <> part.id] + part.id, part.is_part = true
  DELETE of
}

// name: list_parts(tenant)
// List which runs over all users of the tenant have which parts.
MATCH (r:ConsolidationRun) WHERE r.tenant = $tenant AND r.created_at IS NOT NULL
RETURN r.id AS run_id, COLLECT { MATCH (r)-[:PART]->(p) RETURN p.id } AS part_ids

// name: create_parts(rows)
// Make runs the parts of runs over all users.
UNWIND $rows AS row
MATCH (r:ConsolidationRun {id: row.run_id})
MATCH (p:ConsolidationRun {id: row.part_id})
MERGE (r)-[:PART]->(p)

// name: link_changes(group_id)
// Link the changes of a group to the runs that made them, which belong to the tenant as a whole.
MATCH (c:Change {group_id: $group_id}) WHERE NOT EXISTS { (:ConsolidationRun)-[:CHANGED]->(c) }
MATCH (r:ConsolidationRun {id: c.run_id})
CREATE (r)-[:CHANGED]->(c)

// name: read_nodes(ids)
// Read nodes in full.
UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
RETURN id, labels(n) AS labels, properties(n) AS properties

// name: read_facts(ids)
// Read versions of memories in full, with the nodes that they connect.
UNWIND $ids AS id
MATCH (a)-[r:RELATES_TO]->(b) WHERE elementId(r) = id
RETURN id, a.uuid AS start, b.uuid AS end, properties(r) AS properties

// name: find_by_uuid(uuids)
// Find entities and messages by their ids.
UNWIND $uuids AS uuid
CALL (uuid) {
  MATCH (n:Entity {uuid: uuid}) RETURN n
  UNION
  MATCH (n:Episodic {uuid: uuid}) RETURN n
}
RETURN uuid, elementId(n) AS id

// name: check_copying(tenant, attempt)
// Check the gate of a move in the graph that it copies to; no row is returned when another attempt has it.
MATCH (g:PlacementGate {tenant: $tenant}) WHERE g.attempt = $attempt AND g.state = 'copying'
RETURN g.state AS state

// name: delete_nodes(ids)
// Delete nodes with their relationships.
UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
DETACH DELETE n

// name: clear_nodes(ids)
// Remove all properties of nodes, so that no constraint refuses what others get.
UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
SET n = {}

// name: replace_nodes(rows)
// Set the labels and properties of nodes.
UNWIND $rows AS row
MATCH (n) WHERE elementId(n) = row.id
REMOVE n:$(row.obsolete)
SET n:$(row.labels), n = row.properties
WITH n AS e, n AS m
{{pack_entity_vector}}
{{pack_message_vector}}

// name: create_nodes(rows)
// Create nodes and return their ids.
UNWIND $rows AS row
CREATE (n:$(row.labels))
SET n = row.properties
WITH row, n, n AS e, n AS m
{{pack_entity_vector}}
{{pack_message_vector}}
RETURN row.key AS key, elementId(n) AS id

// name: delete_relationships(ids)
// Delete relationships.
UNWIND $ids AS id
MATCH ()-[r]->() WHERE elementId(r) = id
DELETE r

// name: create_facts(rows)
// Create versions of memories; return how many.
UNWIND $rows AS row
MATCH (a:Entity {uuid: row.start})
MATCH (b:Entity {uuid: row.end})
CREATE (a)-[r:RELATES_TO]->(b)
SET r = row.properties
WITH r
{{pack_fact_vector}}
RETURN count(r) AS created

// name: create_links(rows)
// Create other relationships; return how many.
UNWIND $rows AS row
MATCH (a) WHERE elementId(a) = row.start
MATCH (b) WHERE elementId(b) = row.end
CREATE (a)-[r:$(row.type)]->(b)
SET r = row.properties
RETURN count(r) AS created

// name: lock_group(group_id)
// Wait until nobody reads or writes under the lock of a group.
MATCH (u:User {group_id: $group_id})
SET u.left_at = timestamp()
