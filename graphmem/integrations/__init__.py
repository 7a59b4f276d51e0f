"""Adapters to agent frameworks, each with an extra of its name; none of them is imported by another package."""
