"""The export of one user: the models of its entries, the writer, and the published JSON Schema."""
