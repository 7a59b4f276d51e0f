// Snapshots: the elements that a consolidation run changed, before and after, and how a rollback restores them.

// name: fetch_fact_images(group_id, ids)
// Fetch the images of fact edges: properties except the vector, and both ends.
UNWIND $ids AS id
MATCH (s)-[r:RELATES_TO {uuid: id}]->(o) WHERE r.group_id = $group_id
RETURN id, r {.*, fact_embedding: null, next_vector: null, revision: null} AS properties, s.uuid AS source, o.uuid AS target, null AS labels

// name: fetch_entity_images(group_id, ids)
// Fetch the images of entity nodes: properties except the vector, and labels.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
RETURN id, e {.*, name_embedding: null, next_vector: null, revision: null} AS properties, null AS source, null AS target, labels(e) AS labels

// name: fetch_episode_images(group_id, ids)
// Fetch the images of messages: the list of facts based on them, which is all that consolidation changes.
UNWIND $ids AS id
MATCH (m:Episodic {uuid: id}) WHERE m.group_id = $group_id
RETURN id, m {.entity_edges} AS properties, null AS source, null AS target, null AS labels

// name: fetch_mention_images(group_id, ids)
// Fetch the images of mentions; the id of one is the ids of message and entity, joined by '>'.
UNWIND $ids AS id
WITH id, split(id, '>') AS ends
MATCH (m:Episodic {uuid: ends[0]})-[r:MENTIONS]->(e:Entity {uuid: ends[1]}) WHERE m.group_id = $group_id
RETURN id, properties(r) AS properties, m.uuid AS source, e.uuid AS target, null AS labels

// name: record_before(run_id, group_id, rows, now)
// Write the images of elements before a run changes them; null for an element that the run creates.
MATCH (run:ConsolidationRun {id: $run_id})
UNWIND $rows AS row
CREATE (run)-[:CHANGED]->(:Change {run_id: $run_id, group_id: $group_id, kind: row.kind, element_id: row.id,
  memory_id: row.memory_id, before: row.before, position: row.position, created_at: $now})

// name: save_vectors(run_id)
// Store the vectors of the elements of a run beside their images.
CALL () {
  MATCH (:ConsolidationRun {id: $run_id})-[:CHANGED]->(c:Change {kind: 'fact'}) WHERE c.vector IS NULL
  MATCH ()-[r:RELATES_TO {uuid: c.element_id}]->() WHERE r.group_id = c.group_id
  SET c.vector = r.fact_embedding
}
CALL () {
  MATCH (:ConsolidationRun {id: $run_id})-[:CHANGED]->(c:Change {kind: 'entity'}) WHERE c.vector IS NULL
  MATCH (e:Entity {uuid: c.element_id}) WHERE e.group_id = c.group_id
  SET c.vector = e.name_embedding
}

// name: copy_vectors(run_id, from_run_id)
// Copy the vectors of elements that no longer exist from the run that a rollback undoes.
MATCH (:ConsolidationRun {id: $run_id})-[:CHANGED]->(c:Change) WHERE c.vector IS NULL
MATCH (kept:Change {run_id: $from_run_id, kind: c.kind, element_id: c.element_id})
SET c.vector = kept.vector

// name: record_after(run_id, rows)
// Write the images of elements after a run.
UNWIND $rows AS row
MATCH (c:Change {run_id: $run_id, kind: row.kind, element_id: row.id})
SET c.after = row.after, c.memory_id = row.memory_id

// name: delete_changes(run_id, rows)
// Delete the changes of some elements of a run.
UNWIND $rows AS row
MATCH (c:Change {run_id: $run_id, kind: row.kind, element_id: row.id})
DETACH DELETE c

// name: list_changes(run_id, limit)
// List the changes of a run in the order they were recorded; a null limit returns all.
MATCH (:ConsolidationRun {id: $run_id})-[:CHANGED]->(c:Change)
RETURN c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after
ORDER BY c.position LIMIT coalesce($limit, 9223372036854775807)

// name: find_later_versions(group_id, rows)
// Find the versions of memories that are later than the last one a run wrote.
UNWIND $rows AS row
MATCH ()-[r:RELATES_TO {memory_id: row.memory_id}]->() WHERE r.group_id = $group_id AND r.version > row.version
RETURN r.uuid AS id, r.memory_id AS memory_id

// name: find_active_hash_holders(group_id, keys)
// Find the fact edges that hold the unique keys of facts to be restored.
UNWIND $keys AS key
MATCH ()-[r:RELATES_TO {active_hash: key}]->() WHERE r.group_id = $group_id
RETURN r.uuid AS id, r.memory_id AS memory_id, key

// name: find_name_holders(group_id, keys)
// Find the entities that have the names of entities to be restored.
MATCH (e:Entity {group_id: $group_id}) WHERE e.name_key IN $keys
RETURN e.uuid AS id, e.name_key AS key

// name: list_entity_relationships(group_id, ids)
// List the relationships of entities that a rollback removes.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id})-[r:RELATES_TO|MENTIONS]-(other) WHERE e.group_id = $group_id
RETURN DISTINCT id, type(r) AS type, CASE type(r) WHEN 'RELATES_TO' THEN r.uuid ELSE other.uuid + '>' + id END AS tie

// name: find_referencing_facts(group_id, memory_ids)
// Find the facts that refer to memories that a rollback removes.
MATCH ()-[r:RELATES_TO]->()
WHERE r.group_id = $group_id AND (r.superseded_by IN $memory_ids OR r.ended_by IN $memory_ids
  OR any(id IN r.supersedes WHERE id IN $memory_ids)
  OR any(id IN r.contests WHERE id IN $memory_ids) OR any(id IN r.associations WHERE id IN $memory_ids))
RETURN r.uuid AS id

// name: remove_facts(group_id, ids)
// Delete fact edges.
UNWIND $ids AS id
MATCH ()-[r:RELATES_TO {uuid: id}]->() WHERE r.group_id = $group_id
// A deleted edge keeps its unique keys until the transaction ends if it was changed before: clear them first.
SET r = {}
DELETE r

// name: restore_facts(group_id, run_id, rows)
// Restore fact edges between their entities, with the vectors stored by a run.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH (s:Entity {uuid: row.source})
MATCH (o:Entity {uuid: row.target})
MATCH (c:Change {run_id: $run_id, kind: 'fact', element_id: row.id})
CREATE (s)-[r:RELATES_TO]->(o)
SET r = row.properties, r.fact_embedding = c.vector, r.revision = u.revision

// name: set_facts(group_id, rows)
// Set properties of fact edges; null removes one.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH ()-[r:RELATES_TO {uuid: row.id}]->() WHERE r.group_id = $group_id
SET r += row.properties, r.revision = u.revision

// name: remove_entities(group_id, ids)
// Delete entities with their aliases and references; one that still has facts or mentions makes the query fail.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
REMOVE e.alias_keys
WITH e
{{link_aliases}}
CALL (e) {
  MATCH (e)-[reference:REFERS_TO]-() DELETE reference
}
DELETE e

// name: restore_entities(group_id, run_id, rows)
// Restore entities with the vectors stored by a run.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH (c:Change {run_id: $run_id, kind: 'entity', element_id: row.id})
CREATE (e:$(row.labels))
SET e = row.properties, e.name_embedding = c.vector, e.revision = u.revision
WITH e
{{link_aliases}}

// name: set_entities(group_id, rows)
// Set properties and labels of entities; null removes a property.
MATCH (u:User {group_id: $group_id})
UNWIND $rows AS row
MATCH (e:Entity {uuid: row.id}) WHERE e.group_id = $group_id
SET e += row.properties, e.revision = u.revision
REMOVE e:$(row.removed_labels)
SET e:$(row.labels)
WITH e
{{link_aliases}}

// name: set_episodes(group_id, rows)
// Set properties of messages.
UNWIND $rows AS row
MATCH (m:Episodic {uuid: row.id}) WHERE m.group_id = $group_id
SET m += row.properties

// name: remove_mentions(group_id, ids)
// Delete mentions.
UNWIND $ids AS id
WITH split(id, '>') AS ends
MATCH (m:Episodic {uuid: ends[0]})-[r:MENTIONS]->(:Entity {uuid: ends[1]}) WHERE m.group_id = $group_id
DELETE r

// name: restore_mentions(rows)
// Restore mentions.
UNWIND $rows AS row
MATCH (m:Episodic {uuid: row.source})
MATCH (e:Entity {uuid: row.target})
CREATE (m)-[r:MENTIONS]->(e)
SET r = row.properties

// name: set_mentions(group_id, rows)
// Set properties of mentions.
UNWIND $rows AS row
WITH row, split(row.id, '>') AS ends
MATCH (m:Episodic {uuid: ends[0]})-[r:MENTIONS]->(:Entity {uuid: ends[1]}) WHERE m.group_id = $group_id
SET r += row.properties

// name: delete_expired(group_id, before)
// Delete the changes of a user that were recorded before a time.
MATCH (c:Change {group_id: $group_id}) WHERE c.created_at < $before DETACH DELETE c
RETURN count(*) AS erased

// name: find_changes_of_memory(group_id, memory_id)
// Find the changes of a memory and those whose images contain its id.
MATCH (c:Change {group_id: $group_id})
WHERE c.memory_id = $memory_id OR c.before CONTAINS $memory_id OR c.after CONTAINS $memory_id
RETURN c.run_id AS run_id, c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after

// name: find_changes_of_entities(group_id, ids)
// Find the changes of entities and of their mentions in messages.
MATCH (c:Change {group_id: $group_id})
WHERE c.kind = 'entity' AND c.element_id IN $ids OR c.kind = 'mention' AND split(c.element_id, '>')[1] IN $ids
RETURN c.run_id AS run_id, c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after

// name: find_changes_mentioning(group_id, words)
// Find the changes whose images contain one of some ids.
MATCH (c:Change {group_id: $group_id})
WHERE any(word IN $words WHERE c.before CONTAINS word OR c.after CONTAINS word)
RETURN c.run_id AS run_id, c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after

// name: replace_images(rows)
// Replace the images of changes.
UNWIND $rows AS row
MATCH (c:Change {run_id: row.run_id, kind: row.kind, element_id: row.id})
SET c.before = row.before, c.after = row.after
