"""Keeps secrets out of reports: everything in a spec that may be a secret is masked.

Only the author of a spec knows which headers and parameters are secret. So values are shown only where no
secret can stand: in headers that only control the exchange, and in placeholders, which only name a source.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from oku_core.process.redaction import MASK

_HARMLESS_HEADERS = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
    "content-encoding", "content-language", "content-length", "content-type", "dnt", "expect", "host",
    "if-modified-since", "if-unmodified-since", "keep-alive", "max-forwards", "oku-delay", "oku-run",
    "oku-seed", "pragma", "range", "te", "trailer", "transfer-encoding", "upgrade-insecure-requests",
    "user-agent",
})  # fmt: skip
_PLACEHOLDER = r"\{i\}|\{(?:env|file):[A-Za-z0-9._-]+\}"
_HARMLESS_WORDS = frozenset({"", "Basic", "Bearer", "Token"})
_USER = re.compile(r"(?<=//)[^/?#]*@")


def mask_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a spec, under the names that users write, with `MASK` wherever there may be a secret."""
    kept = _find_placeholders((spec.get("data") or {}).get("columns", ()))
    masked = _mask_content(spec, kept)
    if "url" in masked:
        masked["url"] = [_mask_url(url, kept) for url in masked["url"]]
    for key in ("base-url", "proxy"):
        if key in masked:
            masked[key] = _mask_url(masked[key], kept)
    if "targets" in masked:
        masked["targets"] = [
            {**_mask_content(target, kept), "url": _mask_url(target["url"], kept)}
            for target in masked["targets"]
        ]
    return masked


def has_mask(spec: Mapping[str, Any], masked: Mapping[str, Any]) -> bool:
    """Whether masking hid something of the spec."""
    return dict(spec) != dict(masked)


def mask_header(header: str, columns: Collection[str] = ()) -> str:
    """Mask the value of a header, but for placeholders and where no secret can stand.

    Args:
        header: name and value.
        columns: those that placeholders may stand for, beside the index and secrets.
    """
    return _mask_header(header, _find_placeholders(columns))


def _find_placeholders(columns: Collection[str]) -> re.Pattern[str]:
    """Build an expression that matches the placeholders of a spec, as its only group."""
    names = (re.escape(f"{{{column}}}") for column in columns)
    return re.compile(f"({'|'.join((_PLACEHOLDER, *names))})")


def _mask_content(request: Mapping[str, Any], kept: re.Pattern[str]) -> dict[str, Any]:
    """Copy a spec or one of its targets with its headers and its body masked."""
    masked = dict(request)
    if "header" in masked:
        masked["header"] = [_mask_header(header, kept) for header in masked["header"]]
    if "body" in masked:
        masked["body"] = _mask_text(masked["body"], kept)
    return masked


def _mask_header(header: str, kept: re.Pattern[str]) -> str:
    name, _, value = header.partition(":")
    if name.strip().lower() in _HARMLESS_HEADERS:
        return header
    return f"{name}: {_mask_text(value.strip(), kept)}"


def _mask_url(url: str, kept: re.Pattern[str]) -> str:
    address, mark, query = url.partition("?")
    address = _USER.sub(lambda user: f"{_mask_user(user[0][:-1], kept)}@", address)
    return f"{address}{mark}{'&'.join(_mask_pair(pair, kept) for pair in query.split('&'))}"


def _mask_user(user: str, kept: re.Pattern[str]) -> str:
    """Mask the user name as well as the password: many services take a token as the user name."""
    return ":".join(_mask_text(part, kept) for part in re.split(r":(?![^:{}]*\})", user))


def _mask_pair(pair: str, kept: re.Pattern[str]) -> str:
    name, sign, value = pair.partition("=")
    return f"{name}={_mask_text(value, kept)}" if sign else _mask_text(pair, kept)


def _mask_text(text: str, kept: re.Pattern[str]) -> str:
    """Keep placeholders, and put `MASK` in place of the text around them."""
    return "".join(
        part if place % 2 or part.strip() in _HARMLESS_WORDS else MASK
        for place, part in enumerate(kept.split(text))
    )
