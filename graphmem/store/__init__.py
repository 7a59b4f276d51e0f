"""Neo4j: queries of the catalogue, run in transactions."""
