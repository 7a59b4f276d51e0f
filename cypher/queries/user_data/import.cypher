// Writing an export into the graph of one user.

// name: list_entity_names(group_id)
// Return the id of every entity, the keys of its name and aliases, and whether it stands for the user.
MATCH (e:Entity {group_id: $group_id})
RETURN e.name_key AS name_key, coalesce(e.alias_keys, []) AS alias_keys, e.uuid AS uuid, elementId(e) AS element_id,
       coalesce(e.is_user, false) AS is_user

// name: list_records(group_id)
// Return every record with the properties that identify it.
MATCH {{record}}
RETURN labels(n)[0] AS label, elementId(n) AS element_id,
       n {.uuid, .message_id, .session_id, .item_key, .preference_type, .preference_key, .pattern_type, .pattern_key,
          .intent, .key, .position} AS properties

// name: list_memories(group_id)
// Return the first version of every memory, and the version that is current.
MATCH (s)-[r:RELATES_TO {group_id: $group_id}]->(o) WHERE r.version = 1 OR r.active_hash IS NOT NULL
RETURN r.memory_id AS memory_id, r.version AS version, r.active_hash AS active_hash, r.content_hash AS content_hash,
       r.created_at AS created_at, s.uuid AS subject_id, o.uuid AS object_id

// name: list_latest_versions(group_id)
// Return the number of the latest version of every memory.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() RETURN r.memory_id AS memory_id, max(r.version) AS version

// name: find_taken_ids(ids, memory_ids, shared_group)
// Return which ids of entities, messages and versions are in use, and which memory ids the tenant's global group uses.
CALL () {
  UNWIND $ids AS id MATCH (e:Entity {uuid: id}) RETURN id
  UNION
  UNWIND $ids AS id MATCH (m:Episodic {uuid: id}) RETURN id
  UNION
  UNWIND $ids AS id MATCH ()-[r:RELATES_TO {uuid: id}]->() RETURN id
  UNION
  UNWIND $memory_ids AS id MATCH ()-[r:RELATES_TO {group_id: $shared_group, memory_id: id}]->() RETURN id
}
RETURN id

// name: create_nodes(group_id, rows)
// Create nodes with their labels, and link those that are entities to their aliases.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
CREATE (e:$(row.labels)) SET e = row.properties, e.revision = u.revision
WITH row, e, e AS m
{{pack_entity_vector}}
{{pack_message_vector}}
{{link_aliases}}
RETURN row.key AS key, elementId(e) AS element_id

// name: create_versions(group_id, rows)
// Create versions of memories.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH (s:Entity {uuid: row.subject_id})
MATCH (o:Entity {uuid: row.object_id})
CREATE (s)-[r:RELATES_TO]->(o)
SET r = row.properties, r.revision = u.revision
WITH r
{{pack_fact_vector}}

// name: create_links(rows)
// Create relationships unless they exist.
UNWIND $rows AS row
MATCH (a) WHERE elementId(a) = row.start
MATCH (b) WHERE elementId(b) = row.end
MERGE (a)-[r:$(row.type)]->(b)
ON CREATE SET r = row.properties

// name: renew_sessions(group_id, session_ids)
// Count the messages of sessions again, and find the last one.
UNWIND $session_ids AS session_id
MATCH (s:Session {group_id: $group_id, session_id: session_id})
CALL (s) {
  MATCH (s)-[:HAS_EPISODE]->(m)
  WITH m ORDER BY m.position
  RETURN count(m) AS messages, collect(m.uuid)[-1] AS last
}
SET s.message_count = messages + size(coalesce(s.transcript, [])), s.last_episode = last

// name: renew_entity_edges(ids)
// Let messages list only those versions of memories that exist.
UNWIND $ids AS id
MATCH (m:Episodic {uuid: id})
SET m.entity_edges = [version IN m.entity_edges
  WHERE EXISTS { MATCH ()-[r:RELATES_TO {uuid: version}]->() WHERE r.group_id = m.group_id }]

// name: set_user(group_id, properties)
// Set the properties that the user's own node lacks, and an earlier time of creation; return the names of those that it
// keeps with other values.
MATCH (u:User {group_id: $group_id})
WITH u, properties(u) AS before
SET u += $properties
SET u += before {.*, created_at: CASE WHEN $properties.created_at < before.created_at THEN $properties.created_at
                                      ELSE before.created_at END}
WITH before UNWIND keys($properties) AS name
WITH before, name WHERE name <> 'created_at' AND before[name] <> $properties[name]
RETURN name ORDER BY name
