// Vector indexes that keep vectors as they are: their order is exact, and a filter that nothing passes is answered.
// The quantized ones before them failed there, once the index was one segment with deletions. A domain is filtered too.
DROP INDEX graphmem_fact_vector IF EXISTS;
CYPHER 25 CREATE VECTOR INDEX graphmem_fact_embedding IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON r.fact_embedding
WITH [r.group_id, r.valid_from, r.valid_to, r.known_from, r.known_to, r.domain]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
DROP INDEX graphmem_message_vector IF EXISTS;
CYPHER 25 CREATE VECTOR INDEX graphmem_message_embedding IF NOT EXISTS FOR (m:Episodic) ON m.content_embedding
WITH [m.group_id, m.session_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
DROP INDEX graphmem_entity_vector IF EXISTS;
CYPHER 25 CREATE VECTOR INDEX graphmem_entity_embedding IF NOT EXISTS FOR (e:Entity) ON e.name_embedding
WITH [e.group_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
