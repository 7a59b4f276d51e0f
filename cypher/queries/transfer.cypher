// Everything of one user: out, in again, and gone.

// name: get_user(group_id)
// Fetch the user's own node.
MATCH (u:User {group_id: $group_id}) RETURN u {.*} AS user

// name: stream_entities(group_id)
// Fetch every entity with its vector.
MATCH (e:Entity {group_id: $group_id}) RETURN e {.*} AS node, labels(e) AS labels ORDER BY e.uuid

// name: stream_facts(group_id)
// Fetch every version of every memory with its vector.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
RETURN r {.*, fact_embedding: null} AS fact, r.fact_embedding AS vector,
       startNode(r).uuid AS subject_id, endNode(r).uuid AS object_id
ORDER BY r.memory_id, r.version

// name: list_record_keys(group_id)
// Find every other node of the user that outlives an export: messages, sessions, what was learned; whole where it has no id.
MATCH (n) WHERE n.group_id = $group_id
  AND none(label IN labels(n) WHERE label IN ['User', 'Entity', 'ConsolidationRun', 'Change', 'Extraction', 'IdempotentRequest'])
WITH n, CASE WHEN n:Session THEN 'session:' + n.session_id ELSE coalesce(n.uuid, n.id) END AS key
RETURN elementId(n) AS element_id, labels(n) AS labels, key, CASE WHEN key IS NULL THEN properties(n) END AS properties

// name: fetch_records(element_ids)
// Fetch some of those nodes with their vectors, in the order asked for.
UNWIND range(0, size($element_ids) - 1) AS position
MATCH (n) WHERE elementId(n) = $element_ids[position]
RETURN properties(n) AS properties, labels(n) AS labels, elementId(n) AS element_id ORDER BY position

// name: count_entries(group_id)
// Count what an export of a user holds beside its links.
RETURN COUNT { MATCH (e:Entity {group_id: $group_id}) }
     + COUNT { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() }
     + COUNT { MATCH (n) WHERE n.group_id = $group_id AND none(label IN labels(n)
               WHERE label IN ['User', 'Entity', 'ConsolidationRun', 'Change', 'Extraction', 'IdempotentRequest']) } AS size

// name: list_links(group_id)
// Fetch every relationship between nodes of the user but the facts.
MATCH (a)-[r]->(b) WHERE a.group_id = $group_id AND b.group_id = $group_id AND type(r) <> 'RELATES_TO'
  AND none(label IN labels(a) + labels(b) WHERE label IN ['User', 'ConsolidationRun', 'Change', 'Extraction', 'IdempotentRequest'])
RETURN type(r) AS type, elementId(a) AS start, a.uuid AS start_uuid, elementId(b) AS end, b.uuid AS end_uuid,
       properties(r) AS properties

// name: find_taken_ids(ids)
// Find which ids of entities, messages and facts are in use, and whose they are.
CALL () {
  UNWIND $ids AS id MATCH (e:Entity {uuid: id}) RETURN id, e.group_id AS group_id
  UNION
  UNWIND $ids AS id MATCH (m:Episodic {uuid: id}) RETURN id, m.group_id AS group_id
  UNION
  UNWIND $ids AS id MATCH ()-[r:RELATES_TO {uuid: id}]->() RETURN id, r.group_id AS group_id
}
RETURN id, group_id

// name: list_identities(group_id)
// Find what a user has already: names, messages, sessions, memories, current statements.
MATCH (u:User {group_id: $group_id})
RETURN COLLECT { MATCH (e:Entity {group_id: $group_id}) RETURN [e.name_key, e.uuid] } AS names,
       COLLECT { MATCH (m:Episodic {group_id: $group_id}) RETURN [m.message_id, m.uuid] } AS messages,
       COLLECT { MATCH (s:Session {group_id: $group_id}) RETURN s.session_id } AS sessions,
       COLLECT { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.version = 1 RETURN r.memory_id } AS memories,
       COLLECT { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.active_hash IS NOT NULL
                 RETURN [r.active_hash, r.memory_id] } AS statements

// name: create_nodes(rows)
// Make nodes with their labels.
UNWIND $rows AS row
CREATE (n:$(row.labels)) SET n = row.properties
RETURN row.key AS key, elementId(n) AS element_id

// name: list_linkable_nodes(group_id)
// Find the nodes that links of an import may tie, by what names them.
MATCH (n) WHERE n.group_id = $group_id AND (n:Entity OR n:Episodic OR n:Session)
RETURN elementId(n) AS element_id, coalesce(n.uuid, 'session:' + n.session_id) AS key

// name: create_links(rows)
// Tie nodes of an import; one that is there already stays single.
UNWIND $rows AS row
MATCH (a) WHERE elementId(a) = row.start
MATCH (b) WHERE elementId(b) = row.end
MERGE (a)-[r:$(row.type)]->(b)
ON CREATE SET r = row.properties

// name: set_user(group_id, properties)
// Keep what was exported of the user's own node.
MATCH (u:User {group_id: $group_id}) SET u += $properties

// name: erase_facts(group_id)
// Erase every version of every memory.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() DELETE r RETURN count(*) AS erased

// name: erase_nodes(group_id)
// Erase every node of the user with all that hangs on it, counted by label.
MATCH (n) WHERE n.group_id = $group_id
WITH n, [label IN labels(n) WHERE label IN ['Entity', 'Episodic', 'Session', 'User'] | label][0] AS known, labels(n)[0] AS first
WITH n, coalesce(known, first) AS kind
DETACH DELETE n
RETURN kind, count(*) AS erased

// name: count_residue(group_id, user_id, tenant)
// Count what is left of a user anywhere in the graph.
RETURN COUNT { MATCH (n) WHERE n.group_id = $group_id OR (n:IdempotentRequest AND n.owner_group = $group_id)
                 OR (n:ConsolidationRun AND n.tenant = $tenant AND n.user_id = $user_id) }
     + COUNT { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() }
     + COUNT { MATCH ()-[r:MENTIONS|HAS_EPISODE|NEXT_EPISODE]->() WHERE r.group_id = $group_id } AS residue
