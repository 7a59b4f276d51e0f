// Re-embedding: vectors of another model are written to `next_vector`, searched there, and moved to where vectors belong.
// Every step may be repeated. A change of a text removes its `next_vector`.

// name: begin(model, dimension, embedder, job_id)
// Record the model of the next vectors, unless a re-embedding is under way or the vectors are of the model; return the
// state of the vectors. The first SET locks the node, so that one of two processes begins.
MATCH (s:EmbeddingSchema)
SET s.write_checked_at = datetime()
FOREACH (_ IN CASE WHEN s.phase IS NULL AND s.model <> $model THEN [1] ELSE [] END |
  SET s.phase = 'filling', s.next_model = $model, s.next_dimension = $dimension, s.next_embedder = $embedder,
      s.reembedding_job = $job_id, s.vectors_done = 0)
RETURN properties(s) AS state

// name: get_state()
// Return which model the vectors are of, and the re-embedding that is under way.
MATCH (s:EmbeddingSchema) RETURN properties(s) AS state LIMIT 1

// name: count_vectors()
// Return how many facts, entities and messages there are.
CALL () { MATCH ()-[r:RELATES_TO]->() RETURN count(r) AS facts }
CALL () { MATCH (e:Entity) RETURN count(e) AS entities }
CALL () { MATCH (m:Episodic) RETURN count(m) AS messages }
RETURN facts + entities + messages AS total

// name: record_progress(done)
// Count vectors that are finished.
MATCH (s:EmbeddingSchema) SET s.vectors_done = s.vectors_done + $done

// name: set_phase(phase)
// Enter a phase of the re-embedding. From `cleaning` on, the next model is the model of the database.
MATCH (s:EmbeddingSchema) WHERE s.phase <> $phase
SET s.phase = $phase
FOREACH (_ IN CASE WHEN $phase = 'cleaning' THEN [1] ELSE [] END |
  SET s.model = s.next_model, s.dimension = s.next_dimension, s.embedder = s.next_embedder)

// name: end()
// Record that the re-embedding is over.
MATCH (s:EmbeddingSchema)
REMOVE s.phase, s.next_model, s.next_dimension, s.next_embedder, s.reembedding_job, s.vectors_done

// name: list_groups(after, limit)
// List the groups of users in order, one page. A user who is erased while this is read has no group any more.
MATCH (u:User) WHERE u.group_id > $after
WITH u.group_id AS group_id WHERE group_id IS NOT NULL
RETURN group_id ORDER BY group_id LIMIT $limit

// name: list_missing(group_id, limit)
// List elements of a user that have a vector and none of the next model, with the text of each.
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.fact_embedding IS NOT NULL AND r.next_vector IS NULL
  RETURN 'fact' AS kind, r.uuid AS id, r.fact AS text, null AS speaker LIMIT $limit
  UNION ALL
  MATCH (e:Entity {group_id: $group_id}) WHERE e.name_embedding IS NOT NULL AND e.next_vector IS NULL
  RETURN 'entity' AS kind, e.uuid AS id, e.name AS text, null AS speaker LIMIT $limit
  UNION ALL
  MATCH (m:Episodic {group_id: $group_id}) WHERE m.content_embedding IS NOT NULL AND m.next_vector IS NULL
  RETURN 'message' AS kind, m.uuid AS id, m.content AS text, m.speaker AS speaker LIMIT $limit
}
RETURN kind, id, text, speaker LIMIT $limit

// name: store_next(group_id, facts, entities, messages)
// Write vectors of the next model to elements whose text is still the one that was embedded.
CALL () {
  UNWIND $facts AS row
  MATCH ()-[r:RELATES_TO {uuid: row.id}]->() WHERE r.group_id = $group_id AND r.fact = row.text
  CALL db.create.setRelationshipVectorProperty(r, 'next_vector', row.vector)
}
CALL () {
  UNWIND $entities AS row
  MATCH (e:Entity {uuid: row.id}) WHERE e.group_id = $group_id AND e.name = row.text
  CALL db.create.setNodeVectorProperty(e, 'next_vector', row.vector)
}
CALL () {
  UNWIND $messages AS row
  MATCH (m:Episodic {uuid: row.id}) WHERE m.group_id = $group_id AND m.content = row.text
  CALL db.create.setNodeVectorProperty(m, 'next_vector', row.vector)
}
RETURN true AS stored

// name: move_vectors(group_id, limit)
// Replace vectors of a user by those of the next model and return how many were replaced.
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.next_vector IS NOT NULL AND r.fact_embedding <> r.next_vector
  WITH r LIMIT $limit
  SET r.fact_embedding = r.next_vector
  RETURN count(r) AS facts
}
CALL () {
  MATCH (e:Entity {group_id: $group_id}) WHERE e.next_vector IS NOT NULL AND e.name_embedding <> e.next_vector
  WITH e LIMIT $limit
  SET e.name_embedding = e.next_vector
  RETURN count(e) AS entities
}
CALL () {
  MATCH (m:Episodic {group_id: $group_id}) WHERE m.next_vector IS NOT NULL AND m.content_embedding <> m.next_vector
  WITH m LIMIT $limit
  SET m.content_embedding = m.next_vector
  RETURN count(m) AS messages
}
RETURN facts + entities + messages AS moved

// name: remove_next(group_id, limit)
// Remove the copies of a user's vectors that `next_vector` held, and return how many there were.
CALL () {
  MATCH ()-[r:RELATES_TO {group_id: $group_id}]->() WHERE r.next_vector IS NOT NULL
  WITH r LIMIT $limit
  REMOVE r.next_vector
  RETURN count(r) AS facts
}
CALL () {
  MATCH (e:Entity {group_id: $group_id}) WHERE e.next_vector IS NOT NULL
  WITH e LIMIT $limit
  REMOVE e.next_vector
  RETURN count(e) AS entities
}
CALL () {
  MATCH (m:Episodic {group_id: $group_id}) WHERE m.next_vector IS NOT NULL
  WITH m LIMIT $limit
  REMOVE m.next_vector
  RETURN count(m) AS messages
}
RETURN facts + entities + messages AS removed

// name: list_old_images(group_id, model, limit)
// List the images of consolidation runs whose vectors are of another model.
MATCH (c:Change {group_id: $group_id}) WHERE c.vector IS NOT NULL AND coalesce(c.vector_model, '') <> $model
RETURN c.run_id AS run_id, c.kind AS kind, c.element_id AS element_id, coalesce(c.before, c.after) AS image LIMIT $limit

// name: store_image_vectors(rows, model)
// Write the vectors of images.
UNWIND $rows AS row
MATCH (c:Change {run_id: row.run_id, kind: row.kind, element_id: row.element_id})
SET c.vector = row.vector, c.vector_model = $model

// name: load_facts(group_ids, ids)
// Fetch the vectors of versions of facts that a user can read.
UNWIND $ids AS id
MATCH ()-[r:RELATES_TO {uuid: id}]->() WHERE r.group_id IN $group_ids
RETURN collect([id, r.fact_embedding]) AS found

// name: load_messages(group_ids, ids)
// Fetch the vectors of messages that a user can read.
UNWIND $group_ids AS group_id
MATCH (m:Episodic {group_id: group_id}) WHERE m.message_id IN $ids
RETURN collect([{{message_key}}, m.content_embedding]) AS found
