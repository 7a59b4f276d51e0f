"""Formats of imported documents, one module each. The modules are pure: they need no database."""
