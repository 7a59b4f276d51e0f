// The elements of a tenant as they are stored, for moving them to another graph. They belong to a group, which is a user, a
// space or the tenant itself, or to the tenant as a whole.

// name: list_groups(tenant)
// List the groups of a tenant with their lives and revisions. A user who is erased while this is read has no group any more.
MATCH (u:User) WHERE u.tenant = $tenant AND u.user_id IS NOT NULL
WITH u.group_id AS group_id, coalesce(u.life, u.group_id) AS life, coalesce(u.revision, 0) AS revision WHERE group_id IS NOT NULL
RETURN group_id, life, revision ORDER BY group_id

// name: list_group(group_id)
// List what a graph has of a group: entities, messages and facts by their ids with the revision that tells whether they have
// changed and with what changes without it, and other nodes and relationships in full.
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
  RETURN [elementId(n), label, n.uuid, [coalesce(n.revision, 0), n.pending_job, n.entity_edges]]
} AS versioned, COLLECT {
  MATCH (a)-[r:RELATES_TO {group_id: $group_id}]->(b)
  RETURN [elementId(r), r.uuid,
          [coalesce(r.revision, 0), r.consolidated_by, r.compressed_by, r.reviewed_at.epochSeconds, a.uuid, b.uuid]]
} AS facts, COLLECT {
  CALL () {
    MATCH (n:Entity {group_id: $group_id}) RETURN n
    UNION ALL
    MATCH (n:Episodic {group_id: $group_id}) RETURN n
    UNION ALL
    {{plain_nodes_of_group}}
  }
  MATCH (n)-[r]->(m) WHERE type(r) <> 'RELATES_TO'
  RETURN {{link_columns}}
} AS links

// name: list_of_tenant(tenant, prefix)
// List what belongs to the tenant as a whole, as `list_group` does.
RETURN COLLECT {
  CALL () {
    {{nodes_of_tenant}}
  }
  RETURN [elementId(n), labels(n), properties(n)]
} AS plain, [] AS versioned, [] AS facts, COLLECT {
  CALL () {
    {{nodes_of_tenant}}
  }
  MATCH (n)-[r]->(m)
  RETURN {{link_columns}}
} AS links

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

// name: find_nodes(prefix, keys)
// Find nodes of a tenant that relationships of other groups end at: entities and messages by id, changes by run and element.
UNWIND $keys AS key
CALL (key) {
  MATCH (n:Entity {uuid: key[0]}) RETURN n
  UNION ALL
  MATCH (n:Episodic {uuid: key[0]}) RETURN n
  UNION ALL
  MATCH (n:Change {run_id: key[0], kind: key[1], element_id: key[2]}) RETURN n
}
WITH key, n WHERE n.group_id STARTS WITH $prefix
RETURN key, elementId(n) AS id

// name: delete_nodes(ids)
// Delete nodes with their relationships.
UNWIND $ids AS id
MATCH (n) WHERE elementId(n) = id
DETACH DELETE n

// name: free_names(ids)
// Remove the unique names of entities, so that no constraint refuses the names that others get. What they are found by stays.
UNWIND $ids AS id
MATCH (n:Entity) WHERE elementId(n) = id
REMOVE n.name_key

// name: replace_nodes(rows)
// Set the labels and properties of nodes.
UNWIND $rows AS row
MATCH (n) WHERE elementId(n) = row.id
REMOVE n:$([label IN labels(n) WHERE NOT label IN row.labels])
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
RETURN row.source_id AS source_id, elementId(n) AS id

// name: delete_relationships(ids)
// Delete relationships.
UNWIND $ids AS id
MATCH ()-[r]->() WHERE elementId(r) = id
DELETE r

// name: create_facts(rows)
// Create versions of memories.
UNWIND $rows AS row
MATCH (a:Entity {uuid: row.start})
MATCH (b:Entity {uuid: row.end})
CREATE (a)-[r:RELATES_TO]->(b)
SET r = row.properties
WITH r
{{pack_fact_vector}}

// name: create_links(rows)
// Create other relationships.
UNWIND $rows AS row
MATCH (a) WHERE elementId(a) = row.start
MATCH (b) WHERE elementId(b) = row.end
CREATE (a)-[r:$(row.type)]->(b)
SET r = row.properties
