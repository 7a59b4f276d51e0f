"""Consolidation: runs that merge, link and associate memories and can be rolled back, and nightly maintenance."""
