"""Ingestion: extraction of memories from messages, summaries of sessions, and saving of statements."""
