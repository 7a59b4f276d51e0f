// Drops the vector indexes.

DROP INDEX graphmem_fact_embedding IF EXISTS;
DROP INDEX graphmem_message_embedding IF EXISTS;
DROP INDEX graphmem_entity_embedding IF EXISTS;
