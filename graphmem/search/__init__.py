"""Search in memories and messages, and lookup of entities by name."""
