"""Chats with models in the protocols of their providers: what is asked, the context that is added, what is stored."""
