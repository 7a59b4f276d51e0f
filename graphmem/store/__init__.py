"""Neo4j: queries of the catalogue, run in transactions, with domain types in and out."""
