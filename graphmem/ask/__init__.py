"""Answers from memory with citations."""
