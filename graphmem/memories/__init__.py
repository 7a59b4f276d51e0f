"""Memories: their structure, their validity over time, and how they are saved and changed."""
