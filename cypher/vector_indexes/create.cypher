// The vector indexes, as in the first migration, for another embedding model.
// In a re-embedding, `fact_embedding` and its like stand for the vectors of the next model: see `on_next_vectors`.

CYPHER 25 CREATE VECTOR INDEX graphmem_fact_embedding IF NOT EXISTS FOR ()-[r:RELATES_TO]-() ON r.fact_embedding
WITH [r.group_id, r.valid_from, r.valid_to, r.known_from, r.known_to, r.domain]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
CYPHER 25 CREATE VECTOR INDEX graphmem_message_embedding IF NOT EXISTS FOR (m:Episodic) ON m.content_embedding
WITH [m.group_id, m.session_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
CYPHER 25 CREATE VECTOR INDEX graphmem_entity_embedding IF NOT EXISTS FOR (e:Entity) ON e.name_embedding
WITH [e.group_id]
OPTIONS {indexConfig: {`vector.dimensions`: {{dimension}}, `vector.similarity_function`: 'cosine', `vector.quantization.type`: 'NONE'}};
