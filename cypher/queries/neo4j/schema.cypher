// The schema: which migrations ran, and for which embedding model.

// name: list_applied_migrations()
// List the migrations recorded in the graph.
MATCH (m:Migration) RETURN m.version AS version, m.checksum AS checksum ORDER BY version

// name: record_migration(version, title, checksum)
// Record a migration whose statements have run.
MERGE (m:Migration {version: $version})
ON CREATE SET m.title = $title, m.checksum = $checksum, m.applied_at = datetime()

// name: get_embedding_model()
// Return the embedding model and the dimension of the vector indexes.
MATCH (s:EmbeddingSchema) RETURN s.model AS model, s.dimension AS dimension LIMIT 1

// name: record_embedding_model(model, dimension, embedder)
// Record the embedding model, unless another process has done so.
MERGE (s:EmbeddingSchema {id: 1}) ON CREATE SET s.model = $model, s.dimension = $dimension, s.embedder = $embedder

// name: record_write_check()
// Write the time, to find out whether the database accepts writes.
MATCH (s:EmbeddingSchema) SET s.write_checked_at = datetime()

// name: await_indexes()
// Wait until every index is online and the full-text indexes contain everything written.
CALL db.awaitIndexes(3600)
{{await_fulltext}}
RETURN true AS ready

// name: get_population()
// Return how many indexes there are, the sum of the percentages to which they are populated, and how many still are.
SHOW INDEXES YIELD state, populationPercent
RETURN count(*) AS indexes, coalesce(sum(populationPercent), 0) AS percent, count(CASE state WHEN 'POPULATING' THEN 1 END) AS populating

// name: list_unusable_indexes()
// List the indexes that do not work, with their states.
SHOW INDEXES YIELD name, state WHERE state <> 'ONLINE'
RETURN name, state ORDER BY name

// name: ping()
// Show that the database answers.
RETURN true AS answers
