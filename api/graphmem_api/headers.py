"""Names and patterns of the headers of requests and responses."""

IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_KEY_MAX_LENGTH = 255
IDEMPOTENCY_KEY_PATTERN = "^[!-~]+$"
"""Visible ASCII characters."""

IDEMPOTENT_REPLAY = "Idempotent-Replay"
"""`true` in a response that was stored for an earlier request."""

REQUEST_ID = "X-Request-ID"
REQUEST_ID_PATTERN = "^[A-Za-z0-9._:-]{1,128}$"
"""Request ids of callers that are taken over; any other is replaced."""

IF_MATCH_PATTERN = r'^(?:W/)?"?(\d{1,9})"?$'
"""A version as an entity tag, as in the response header `ETag`."""
