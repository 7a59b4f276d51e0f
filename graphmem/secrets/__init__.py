"""Secrets in texts and JSON values: found, and redacted."""
