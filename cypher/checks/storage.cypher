// What the schema and the erasure of users promise.

// name: wrong_vectors(tenant, limit)
// A vector has another number of dimensions than the vector indexes, or a memory has none, so that searches miss it.
// Fix: Export the user without vectors, forget them and import the export: vectors are made again.
MATCH (schema:EmbeddingSchema)
CALL (schema) {
  MATCH ()-[r:RELATES_TO]->() WHERE r.fact_embedding IS NULL OR size(r.fact_embedding) <> schema.dimension
  RETURN r.group_id AS group_id, r.memory_id AS id
  UNION ALL
  MATCH (m:Episodic) WHERE size(m.content_embedding) <> schema.dimension
  RETURN m.group_id AS group_id, m.message_id AS id
  UNION ALL
  MATCH (e:Entity) WHERE size(e.name_embedding) <> schema.dimension
  RETURN e.group_id AS group_id, e.uuid AS id
}
WITH group_id, id
{{violation}}

// name: data_without_user(tenant, limit)
// There is data of a user who does not exist: who was forgotten, or whose own node was lost.
// Fix: Forget the user again.
CALL () {
  MATCH (n:ArchivedEpisode|BehaviorPattern|Change|ConsolidationRun|ContextItem|ContextUse|Entity|EntityAlias|Episodic|Erasure|
           Extraction|InterestCandidate|LearnedIntent|LearnedPreference|Session|SessionArchive|WebhookCursor)
  RETURN n.group_id AS group_id, coalesce(n.uuid, n.id, n.element_id, n.key, elementId(n)) AS id
  UNION ALL
  MATCH ()-[r:RELATES_TO]->() RETURN r.group_id AS group_id, r.memory_id AS id
}
WITH group_id, id
WHERE group_id IS NOT NULL AND NOT EXISTS { MATCH (:User {group_id: group_id}) }
{{violation}}
