// Reading everything of one user for an export.

// name: lock_user(group_id)
// Lock a user as a write does, in a transaction that is rolled back: nothing that an export contains changes.
MERGE (u:User {group_id: $group_id})
SET u.write_version = coalesce(u.write_version, 0)

// name: get_user(group_id)
// Return the own node of a user, or of a space without what its owners say of it.
MATCH (u:User {group_id: $group_id}) RETURN u {.*, title: null, about: null, source_kind: null, updated_at: null} AS user

// name: count_entries(group_id)
// Count the entities, versions and records of a user.
RETURN COUNT { MATCH (e:Entity {group_id: $group_id}) }
     + COUNT { MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() }
     + COUNT { MATCH {{record}} } AS size

// name: stream_entities(group_id)
// Return every entity with its vector and the memories that mention it beside subject and object.
MATCH (e:Entity {group_id: $group_id})
RETURN e {.*, mentioned_in: COLLECT {
         MATCH (e)<-[reference:REFERS_TO]-() RETURN DISTINCT reference.memory_id AS id ORDER BY id
       }} AS node, labels(e) AS labels
ORDER BY e.uuid

// name: stream_facts(group_id)
// Return every version of every memory with its vector, and with the marks of the runs that changed something.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->()
WITH r, [run IN [r.consolidated_by, r.compressed_by]
         WHERE EXISTS { MATCH (c:ConsolidationRun {id: run}) WHERE coalesce(c.change_count, 0) = 0 }] AS idle
WITH r, coalesce(r.consolidated_by IN idle, false) AS hides_consolidated,
        coalesce(r.compressed_by IN idle, false) AS hides_compressed
RETURN r {.*, fact_embedding: null, next_vector: null,
          consolidated_at: CASE WHEN hides_consolidated THEN null ELSE r.consolidated_at END,
          consolidated_by: CASE WHEN hides_consolidated THEN null ELSE r.consolidated_by END,
          compressed_at: CASE WHEN hides_compressed THEN null ELSE r.compressed_at END,
          compressed_by: CASE WHEN hides_compressed THEN null ELSE r.compressed_by END} AS fact,
       r.fact_embedding AS vector,
       startNode(r).uuid AS subject_id, endNode(r).uuid AS object_id
ORDER BY r.memory_id, r.version

// name: count_current_facts(group_id, now)
// Count the memories that are believed and that hold now or later.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.expired_at IS NULL AND NOT r.retired AND r.valid_to > $now AND {{is_statement}}
RETURN count(r) AS size

// name: stream_current_facts(group_id, now)
// Return the memories that are believed and that hold now or later, with the entities they refer to.
MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.expired_at IS NULL AND NOT r.retired AND r.valid_to > $now AND {{is_statement}}
WITH r ORDER BY r.first_created_at, r.memory_id
RETURN {{fact_version}}, COLLECT {
  UNWIND [startNode(r).uuid, endNode(r).uuid] + coalesce(r.entity_ids, []) AS id
  MATCH (e:Entity {uuid: id}) RETURN DISTINCT [e.uuid, e.name, e.type, coalesce(e.is_user, false)]
} AS entities

// name: list_record_keys(group_id)
// Return the label and the key of every record.
MATCH {{record}}
RETURN elementId(n) AS element_id, labels(n) AS labels,
       CASE WHEN n:Session THEN 'session:' + n.session_id ELSE coalesce(n.uuid, n.id) END AS key

// name: fetch_records(element_ids)
// Return records with their vectors, in the order of their ids.
UNWIND range(0, size($element_ids) - 1) AS position
MATCH (n) WHERE elementId(n) = $element_ids[position]
RETURN properties(n) AS properties, labels(n) AS labels, elementId(n) AS element_id ORDER BY position

// name: list_links(group_id)
// Return every relationship from a record to a record or an entity of the user.
// The subquery keeps the planner from starting at all relationships of these types.
MATCH {{record}}
CALL (n) {
  MATCH (n)-[r:HAS_ARCHIVE|HAS_CONTEXT|HAS_EPISODE|LEARNED_FROM|MENTIONED_IN|MENTIONS|NEXT_EPISODE|SEEN_IN]->(b)
  WHERE b.group_id = $group_id
  RETURN r, b
}
RETURN type(r) AS type, elementId(n) AS start, elementId(b) AS end, b.uuid AS end_uuid, properties(r) AS properties
