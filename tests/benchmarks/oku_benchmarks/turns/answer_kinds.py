"""The kinds of answers that nginx gives, by path: always the same one, or ones that vary as services' do.

All come from memory. An id is drawn for each request, `$msec` is the time with its milliseconds, and a choice
by the id makes the length of a body vary.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class AnswerKind:
    """One of them.

    Args:
        paths: templates with `{i}` for the index; several are asked in turn.
        is_tls: whether it is asked over TLS.
        is_http2: whether it is asked in HTTP/2, with prior knowledge if it is not over TLS.
    """

    paths: tuple[str, ...]
    is_tls: bool = False
    is_http2: bool = False


SAME, VARYING, CHUNKED, JSON, TLS, FOUR_TARGETS = "same", "varying", "chunked", "json", "tls", "four targets"
_SAME, _VARYING = "/{i}", "/varying/{i}"
_CHUNKED, _JSON, _SESSION = "/chunked/{i}", "/json/{i}", "/session/{i}"
ANSWER_KINDS: Mapping[str, AnswerKind] = {
    SAME: AnswerKind((_SAME,)),
    VARYING: AnswerKind((_VARYING,)),
    CHUNKED: AnswerKind((_CHUNKED,)),
    JSON: AnswerKind((_JSON,)),
    TLS: AnswerKind((_VARYING,), is_tls=True),
    FOUR_TARGETS: AnswerKind((_VARYING, _CHUNKED, _JSON, _SESSION)),
}
"""By the names that they have on the page."""
HTTP2_CLEAR, HTTP2_TLS, HTTP2_VARYING = "nginx, clear", "nginx, TLS", "nginx, varying"
HTTP2_KINDS: Mapping[str, AnswerKind] = {
    HTTP2_CLEAR: AnswerKind((_SAME,), is_http2=True),
    HTTP2_TLS: AnswerKind((_SAME,), is_tls=True, is_http2=True),
    HTTP2_VARYING: AnswerKind((_VARYING,), is_http2=True),
}
"""Answers in HTTP/2."""
BEHIND = AnswerKind(("/behind/{i}",), is_http2=True)
"""What a server behind nginx answers."""
LENGTHS = range(800, 1200, 25)
"""Of the items in a body of JSON; so many bodies there are."""
_ITEM = '{"sku":"SKU-104729","name":"A thing with a name","price":19.95,"stock":42},'
LOCATIONS = """\
    location / { return 200 "Hello, World!"; }
    location /varying/ {
      default_type application/json;
      add_header X-Request-Id $request_id;
      return 200 '{"id":"$request_id","at":$msec}';
    }
    location /chunked/ {
      default_type application/json;
      add_header X-Request-Id $request_id;
      # Whoever looks for something to include cannot say the length beforehand.
      ssi on;
      ssi_types *;
      return 200 '{"id":"$request_id","at":$msec}';
    }
    location /json/ {
      default_type application/json;
      add_header X-Request-Id $request_id;
      return 200 '{"id":"$request_id","at":$msec,"items":[$items]}';
    }
    location /session/ {
      default_type application/json;
      add_header Set-Cookie "session=$request_id; Path=/; HttpOnly";
      add_header Cache-Control no-store;
      return 200 '{"session":"$request_id","since":$msec}';
    }"""
"""What nginx answers at each path, for its configuration."""


def build_choices() -> str:
    """The items of bodies that vary in length, one choice by the id of the request, for its configuration."""
    *some, last = (f"'{_build_items(length)}'" for length in LENGTHS)
    share = 100 / len(LENGTHS)
    lines = [*(f"    {share:g}% {items};" for items in some), f"    * {last};"]
    return "\n".join(["  split_clients $request_id $items {", *lines, "  }"])


def _build_items(length: int) -> str:
    """Items of a list in JSON of that many bytes; the name of the last one fills up what is left."""
    items = _ITEM * (length // len(_ITEM) - 1)
    return items + _ITEM[:-1].replace("A thing", "A thing" + "-" * (length - len(items) - len(_ITEM) + 1))
