// The schema: which migrations ran, which process runs them, and for which embedding model.

// name: list_applied_migrations()
// List the migrations recorded in the graph.
MATCH (m:Migration)
RETURN m.version AS version, m.checksum AS checksum, m.compatible_with AS compatible_with ORDER BY version

// name: record_migration(version, title, checksum, compatible_with)
// Record a migration whose statements have run, and from which schema version on processes work with the database after it.
MERGE (m:Migration {version: $version})
ON CREATE SET m.title = $title, m.checksum = $checksum, m.compatible_with = $compatible_with, m.applied_at = datetime()

// name: get_migration_lease()
// Return to which schema version a process migrates the database, or was when it ended, and whether its time has yet to pass.
MATCH (l:MigrationLease {id: 1}) WHERE l.holder IS NOT NULL
RETURN l.version AS version, l.compatible_with AS compatible_with, l.expires_at > datetime.realtime() AS is_held

// name: take_migration_lease(holder, version, compatible_with, seconds)
// Take the lease of migrations; no row is returned while another process has it. The node is locked before it is read.
MERGE (l:MigrationLease {id: 1})
SET l.asked_at = datetime.realtime()
WITH l WHERE l.holder IS NULL OR l.holder = $holder OR l.expires_at <= datetime.realtime()
SET l.holder = $holder, l.version = $version, l.compatible_with = $compatible_with,
    l.expires_at = datetime.realtime() + duration({seconds: $seconds})
RETURN l.holder AS holder

// name: extend_migration_lease(holder, seconds)
// Extend the lease of migrations; no row is returned when another process has it.
MATCH (l:MigrationLease {id: 1})
SET l.asked_at = datetime.realtime()
WITH l WHERE l.holder = $holder
SET l.expires_at = datetime.realtime() + duration({seconds: $seconds})
RETURN l.holder AS holder

// name: release_migration_lease(holder)
// Give the lease of migrations back, unless another process has it.
MATCH (l:MigrationLease {id: 1})
SET l.asked_at = datetime.realtime()
WITH l WHERE l.holder = $holder
REMOVE l.holder, l.expires_at

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
