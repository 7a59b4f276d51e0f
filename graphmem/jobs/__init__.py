"""Durable jobs: stored before they start, run in order for each user, resumed after a crash at the interrupted step."""
