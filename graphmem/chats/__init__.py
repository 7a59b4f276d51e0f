"""Chats with models in their providers' protocols: reading requests, adding contexts, storing turns."""
