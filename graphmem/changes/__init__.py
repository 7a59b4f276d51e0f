"""Changes of memories: what changed between two times, and their delivery to webhooks."""
