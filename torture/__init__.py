"""Proof that the service withstands crashes, concurrency, hostile input and load: `python -m torture`."""
