"""Conversations: sessions and their messages."""
