"""Names and patterns of the headers of requests and responses."""

CONTEXT_ID = "X-Graphmem-Context-Id"
"""The context that was added to a model call, by which its answer can be rated."""

GRAPHMEM_KEY = "X-Graphmem-Key"
"""The key of graphmem in a call that sends a key of the provider as well."""

IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_KEY_MAX_LENGTH = 255
IDEMPOTENCY_KEY_PATTERN = "^[!-~]+$"
"""Visible ASCII characters."""

IDEMPOTENT_REPLAY = "Idempotent-Replay"
"""`true` in a response that was stored for an earlier request."""

REQUEST_ID = "X-Request-ID"
REQUEST_ID_PATTERN = "^[A-Za-z0-9._:-]{1,128}$"
"""Request ids of callers that are taken over; any other is replaced."""

MEMORY = "X-Graphmem-Memory"
"""`unavailable` in the response to a call that a model was given without memory."""

UPSTREAM_REQUEST_ID = "X-Upstream-Request-ID"
"""The request id of the provider that a call was passed on to."""

IF_MATCH_PATTERN = r'^(?:W/)?"?(\d{1,9})"?$'
"""A version as an entity tag, as in the response header `ETag`."""
