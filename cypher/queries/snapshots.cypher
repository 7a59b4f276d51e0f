// Before-images: what a consolidation run changed, element by element, and the way back.

// name: fetch_fact_images(group_id, ids)
// Fetch the images of fact edges: properties but the vector, and both ends.
UNWIND $ids AS id
MATCH (s)-[r:RELATES_TO {uuid: id}]->(o) WHERE r.group_id = $group_id
RETURN id, r {.*, fact_embedding: null} AS properties, s.uuid AS source, o.uuid AS target, null AS labels

// name: fetch_entity_images(group_id, ids)
// Fetch the images of entity nodes: properties but the vector, and labels.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
RETURN id, e {.*, name_embedding: null} AS properties, null AS source, null AS target, labels(e) AS labels

// name: fetch_episode_images(group_id, ids)
// Fetch what consolidation may change of messages: the facts that rest on them.
UNWIND $ids AS id
MATCH (m:Episodic {uuid: id}) WHERE m.group_id = $group_id
RETURN id, m {.entity_edges} AS properties, null AS source, null AS target, null AS labels

// name: fetch_mention_images(group_id, ids)
// Fetch the images of mentions; their ids are the message and the entity, joined by '>'.
UNWIND $ids AS id
WITH id, split(id, '>') AS ends
MATCH (m:Episodic {uuid: ends[0]})-[r:MENTIONS]->(e:Entity {uuid: ends[1]}) WHERE m.group_id = $group_id
RETURN id, properties(r) AS properties, m.uuid AS source, e.uuid AS target, null AS labels

// name: record_before(run_id, group_id, rows, now)
// Write the images of elements before a run touches them, or, for what it makes, that they did not exist.
MATCH (run:ConsolidationRun {id: $run_id})
UNWIND $rows AS row
CREATE (run)-[:CHANGED]->(:Change {run_id: $run_id, group_id: $group_id, kind: row.kind, element_id: row.id,
  memory_id: row.memory_id, before: row.before, position: row.position, created_at: $now})

// name: save_vectors(run_id)
// Keep the vectors of the elements of a run beside their images.
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
// Give a rollback the vectors of what is gone from the graph and lies in the images of the run it undoes.
MATCH (:ConsolidationRun {id: $run_id})-[:CHANGED]->(c:Change) WHERE c.vector IS NULL
MATCH (kept:Change {run_id: $from_run_id, kind: c.kind, element_id: c.element_id})
SET c.vector = kept.vector

// name: record_after(run_id, rows)
// Write the images of elements after the run.
UNWIND $rows AS row
MATCH (c:Change {run_id: $run_id, kind: row.kind, element_id: row.id})
SET c.after = row.after, c.memory_id = row.memory_id

// name: delete_changes(run_id, rows)
// Let go of the images of elements that the run looked at and left as they were.
UNWIND $rows AS row
MATCH (c:Change {run_id: $run_id, kind: row.kind, element_id: row.id})
DETACH DELETE c

// name: list_changes(run_id, limit)
// Fetch the changes of a run in the order they were recorded.
MATCH (:ConsolidationRun {id: $run_id})-[:CHANGED]->(c:Change)
RETURN c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after
ORDER BY c.position LIMIT $limit

// name: find_later_versions(group_id, rows)
// Find versions of memories that were written after the latest one a run knows.
UNWIND $rows AS row
MATCH ()-[r:RELATES_TO {memory_id: row.memory_id}]->() WHERE r.group_id = $group_id AND r.version > row.version
RETURN r.uuid AS id, r.memory_id AS memory_id

// name: find_active_hash_holders(group_id, keys)
// Find the edges that hold the keys which a rollback gives back.
UNWIND $keys AS key
MATCH ()-[r:RELATES_TO {active_hash: key}]->() WHERE r.group_id = $group_id
RETURN r.uuid AS id, r.memory_id AS memory_id, key

// name: find_name_holders(group_id, keys)
// Find the entities that bear the names which a rollback gives back.
MATCH (e:Entity {group_id: $group_id}) WHERE e.name_key IN $keys
RETURN e.uuid AS id, e.name_key AS key

// name: list_entity_relationships(group_id, ids)
// Find what lies at entities that a rollback takes away.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id})-[r]-(other) WHERE e.group_id = $group_id
RETURN DISTINCT id, type(r) AS type, CASE type(r) WHEN 'RELATES_TO' THEN r.uuid ELSE other.uuid + '>' + id END AS tie

// name: find_referencing_facts(group_id, memory_ids)
// Find the facts that point to memories which a rollback takes away.
MATCH ()-[r:RELATES_TO]->()
WHERE r.group_id = $group_id AND (r.superseded_by IN $memory_ids OR r.ended_by IN $memory_ids
  OR any(id IN r.supersedes WHERE id IN $memory_ids) OR any(id IN r.associations WHERE id IN $memory_ids))
RETURN r.uuid AS id

// name: remove_facts(group_id, ids)
// Take fact edges out of the graph.
UNWIND $ids AS id
MATCH ()-[r:RELATES_TO {uuid: id}]->() WHERE r.group_id = $group_id
// An edge changed earlier in the transaction holds its keys even when it is deleted: take them from it first.
SET r = {}
DELETE r

// name: restore_facts(run_id, rows)
// Put fact edges back where they lay, with the vectors kept by a run.
UNWIND $rows AS row
MATCH (s:Entity {uuid: row.source})
MATCH (o:Entity {uuid: row.target})
MATCH (c:Change {run_id: $run_id, kind: 'fact', element_id: row.id})
CREATE (s)-[r:RELATES_TO]->(o)
SET r = row.properties, r.fact_embedding = c.vector

// name: set_facts(group_id, rows)
// Set properties of fact edges; null takes one away.
UNWIND $rows AS row
MATCH ()-[r:RELATES_TO {uuid: row.id}]->() WHERE r.group_id = $group_id
SET r += row.properties

// name: remove_entities(group_id, ids)
// Take entities out of the graph; what still lies at one keeps it from going.
UNWIND $ids AS id
MATCH (e:Entity {uuid: id}) WHERE e.group_id = $group_id
DELETE e

// name: restore_entities(run_id, rows)
// Put entities back, with the vectors kept by a run.
UNWIND $rows AS row
MATCH (c:Change {run_id: $run_id, kind: 'entity', element_id: row.id})
CREATE (e:$(row.labels))
SET e = row.properties, e.name_embedding = c.vector

// name: set_entities(group_id, rows)
// Set properties and labels of entities; null takes a property away.
UNWIND $rows AS row
MATCH (e:Entity {uuid: row.id}) WHERE e.group_id = $group_id
SET e += row.properties
REMOVE e:$(row.labels_gone)
SET e:$(row.labels)

// name: set_episodes(group_id, rows)
// Set which facts rest on messages.
UNWIND $rows AS row
MATCH (m:Episodic {uuid: row.id}) WHERE m.group_id = $group_id
SET m += row.properties

// name: remove_mentions(group_id, ids)
// Take mentions out of the graph.
UNWIND $ids AS id
WITH split(id, '>') AS ends
MATCH (m:Episodic {uuid: ends[0]})-[r:MENTIONS]->(:Entity {uuid: ends[1]}) WHERE m.group_id = $group_id
DELETE r

// name: restore_mentions(rows)
// Put mentions back.
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

// name: erase_user(group_id)
// Erase every image of a user.
MATCH (c:Change {group_id: $group_id}) DETACH DELETE c
RETURN count(*) AS erased

// name: delete_expired(before)
// Erase the images that are past their retention.
MATCH (c:Change) WHERE c.created_at < $before DETACH DELETE c
RETURN count(*) AS erased

// name: find_changes_of_memory(group_id, memory_id)
// Find the images of a memory and those that name it.
MATCH (c:Change {group_id: $group_id})
WHERE c.memory_id = $memory_id OR c.before CONTAINS $memory_id OR c.after CONTAINS $memory_id
RETURN c.run_id AS run_id, c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after

// name: find_changes_mentioning(group_id, words)
// Find the images whose text holds one of some ids.
MATCH (c:Change {group_id: $group_id})
WHERE any(word IN $words WHERE c.before CONTAINS word OR c.after CONTAINS word)
RETURN c.run_id AS run_id, c.kind AS kind, c.element_id AS id, c.memory_id AS memory_id, c.before AS before, c.after AS after

// name: replace_images(rows)
// Write images anew after something was erased from them.
UNWIND $rows AS row
MATCH (c:Change {run_id: row.run_id, kind: row.kind, element_id: row.id})
SET c.before = row.before, c.after = row.after
