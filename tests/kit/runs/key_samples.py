"""A value of each key of a spec that is not its default, and specs of any of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from oku_core.spec.spec import USER_CODE_ENGINES, Engine

URL = "http://127.0.0.1:9/"
_CODE = f"a.py@sha256:{'0' * 64}:1:a.py"
_DATA = {
    "name": "a.csv", "format": "csv", "digest": "0" * 64, "size": 99, "rows": 10**6, "columns": ["a"],
    "index": "0" * 64,
}  # fmt: skip
SAMPLES: Mapping[str, object] = {
    "url": URL, "method": "PUT", "header": "X: y", "body": "b", "base-url": "http://127.0.0.1:9",
    "targets": [{"name": "t", "url": "http://127.0.0.1:9/"}], "data": _DATA, "expect-status": "404",
    "expect-body": "b", "expect-match": "b+", "expect-json": "/a=1", "expect-header": "X: y",
    "expect-size": "> 0", "expect-within": "1s", "scenario": _CODE, "include": [f"b{_CODE}"],
    "hooks": ["setup"], "iterations": 7, "users": 3, "iteration-timeout": "1s", "user-classes": "A",
    "tags": "a", "exclude-tags": "a", "requests": 7, "duration": "7s", "rate": "1/s", "stages": "1s:5",
    "arrivals": "poisson", "late": "2s", "max-rate": "5/s", "warm-up": "1s", "concurrency": 3,
    "timeout": "3s", "workers": 2, "start-within": "1s", "give-up-after": "9s", "engine": "auto",
    "grace": "1s", "stop-when-down": "9s", "range-size": 9, "seed": 9, "insecure": True,
    "proxy": "http://127.0.0.1:9", "max-redirects": 3, "cookies": True, "http2": True, "streams": 3,
    "connections": 3, "keepalive": False, "cacert": "ca.pem", "cert": "c.pem", "key": "c.key", "servers": 2,
    "delay": "5ms", "thresholds": "ok > 1", "name": "n",
}  # fmt: skip
_NEEDED: Mapping[str, Mapping[str, object]] = {
    "base-url": {"targets": [{"name": "t", "url": "/"}]}, "rate": {"duration": "7s"},
    "arrivals": {"rate": "1/s", "duration": "7s"}, "late": {"rate": "1/s", "duration": "7s"},
    "key": {"cert": "c.pem"}, "streams": {"http2": True}, "connections": {"http2": True},
}  # fmt: skip
"""What else a key needs; a named engine brings its own version of HTTP."""
_HTTP2_KEYS = {"streams", "connections"}
_PLACES = {"url", "targets", "servers", "delay"}


def build_values(keys: Iterable[str], engine: Engine | None = None) -> dict[str, Any]:
    """A spec with a sample of each of the keys and what they need, as a user writes it."""
    keys, values = list(keys), dict[str, Any]()
    is_code = engine in USER_CODE_ENGINES
    for key in keys:
        if not (engine and key in _HTTP2_KEYS) and not (is_code and key == "base-url"):
            values |= _NEEDED.get(key, {})
    values |= {key: SAMPLES[key] for key in keys if key != "targets" or "base-url" not in keys}
    if is_code:
        values.setdefault("scenario", _CODE)
    elif not _PLACES & values.keys():
        values["url"] = URL
    return values | ({} if engine is None else {"engine": engine})
