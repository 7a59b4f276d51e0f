"""Changes to memories between two times, and their delivery to webhooks."""
