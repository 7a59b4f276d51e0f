"""Consolidation: memories become fewer and better connected, and every run can be undone."""
