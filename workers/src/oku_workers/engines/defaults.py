"""What every engine does unless the spec says otherwise, so that targets see no difference between them."""

DEFAULT_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "oku/0.1",
}
BODY_TYPE = "application/octet-stream"
"""The `Content-Type` of a body."""
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""All others say that their body is empty when there is none, so that nobody waits for it."""
KEEPALIVE_S = 15.0
"""Idle connections are closed after this, sooner than most servers do it."""
