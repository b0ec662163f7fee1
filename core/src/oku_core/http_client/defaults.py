"""Defaults of requests where nobody says otherwise: nobody sees a difference between engines."""

DEFAULT_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "oku/0.1",
}
BODY_TYPE = "application/octet-stream"
"""The `Content-Type` of a body."""
METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Requests of other methods say that their body is empty when there is none: nobody waits for it then."""
KEEPALIVE_S = 15.0
"""Idle connections are closed after this, before most servers close them."""
