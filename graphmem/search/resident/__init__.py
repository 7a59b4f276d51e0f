"""Copies of active users in memory, which answer searches and lookups instead of the database."""
