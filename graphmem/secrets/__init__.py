"""Detection and redaction of secrets in texts and JSON values."""
