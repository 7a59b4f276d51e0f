"""The replacement of all vectors by those of another embedding model, while searches go on."""
