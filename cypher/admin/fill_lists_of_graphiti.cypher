// The lists that Graphiti requires, in a database that Neo4j's tool has imported: it stores nothing for an empty list.
MATCH ()-[r:RELATES_TO]->() WHERE r.episodes IS NULL
CALL (r) {
  SET r.episodes = []
} IN TRANSACTIONS OF 10000 ROWS;
MATCH (m:Episodic) WHERE m.entity_edges IS NULL
CALL (m) {
  SET m.entity_edges = []
} IN TRANSACTIONS OF 10000 ROWS;
