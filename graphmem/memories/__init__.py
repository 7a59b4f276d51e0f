"""Memories: what they are made of, what is valid when, and how they are saved and changed."""
