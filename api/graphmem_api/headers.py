"""Names and patterns of request and response headers."""

CONTEXT_ID = "X-Graphmem-Context-Id"
"""The context added to a model call, for rating its answer."""

GRAPHMEM_KEY = "X-Graphmem-Key"
"""The graphmem key of a call that also has a provider key."""

IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_KEY_MAX_LENGTH = 255
IDEMPOTENCY_KEY_PATTERN = "^[!-~]+$"
"""Visible ASCII characters."""

IDEMPOTENT_REPLAY = "Idempotent-Replay"
"""`true` in a response that was stored for an earlier request."""

REQUEST_ID = "X-Request-ID"
REQUEST_ID_PATTERN = "^[A-Za-z0-9._:-]{1,128}$"
"""Callers' request ids that are accepted; any other is replaced."""

MEMORY = "X-Graphmem-Memory"
"""`unavailable` in responses to model calls made without memory."""

UPSTREAM_REQUEST_ID = "X-Upstream-Request-ID"
"""The provider's request id for a forwarded call."""

IF_MATCH_PATTERN = r'^(?:W/)?"?(\d{1,9})"?$'
"""A version as an entity tag, as in the response header `ETag`."""
