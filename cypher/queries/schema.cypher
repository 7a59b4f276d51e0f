// What has been done to the schema, and for which embedder.

// name: list_applied_migrations()
// List the migrations recorded in the graph.
MATCH (m:Migration) RETURN m.version AS version, m.checksum AS checksum ORDER BY version

// name: record_migration(version, title, checksum)
// Record one migration after its statements have run.
MERGE (m:Migration {version: $version})
ON CREATE SET m.title = $title, m.checksum = $checksum, m.applied_at = datetime()

// name: get_embedding_model()
// Tell which embedding model and dimension the vector indexes are for.
MATCH (s:EmbeddingSchema) RETURN s.model AS model, s.dimension AS dimension LIMIT 1

// name: record_embedding_model(model, dimension)
// Record the embedding model once; the first process wins.
MERGE (s:EmbeddingSchema {id: 1}) ON CREATE SET s.model = $model, s.dimension = $dimension

// name: await_indexes()
// Wait until every index is online and full text has what was written.
CALL db.awaitIndexes(3600)
{{await_fulltext}}
RETURN true AS ready
