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
_PLACEHOLDER = re.compile(r"(\{i\}|\{(?:env|file):[A-Za-z0-9._-]+\})")
_HARMLESS_WORDS = frozenset({"", "Basic", "Bearer", "Token"})
_USER = re.compile(r"(?<=//)[^/?#]*@")


def mask_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a spec, under the names that users write, with `MASK` wherever there may be a secret."""
    masked = _mask_content(spec)
    if "url" in masked:
        masked["url"] = [_mask_url(url) for url in masked["url"]]
    for key in ("base-url", "proxy"):
        if key in masked:
            masked[key] = _mask_url(masked[key])
    if "targets" in masked:
        masked["targets"] = [
            {**_mask_content(target), "url": _mask_url(target["url"])} for target in masked["targets"]
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
    name, _, value = header.partition(":")
    if name.strip().lower() in _HARMLESS_HEADERS:
        return header
    kept = re.compile("(" + "|".join(re.escape(f"{{{column}}}") for column in columns) + ")")
    parts = kept.split(value.strip()) if columns else [value.strip()]
    return f"{name}: " + "".join(part if place % 2 else _mask_text(part) for place, part in enumerate(parts))


def _mask_content(request: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a spec or one of its targets with its headers and its body masked."""
    masked = dict(request)
    if "header" in masked:
        masked["header"] = [mask_header(header) for header in masked["header"]]
    if "body" in masked:
        masked["body"] = _mask_text(masked["body"])
    return masked


def _mask_url(url: str) -> str:
    address, mark, query = url.partition("?")
    address = _USER.sub(lambda user: f"{_mask_user(user[0][:-1])}@", address)
    return f"{address}{mark}{'&'.join(map(_mask_pair, query.split('&')))}"


def _mask_user(user: str) -> str:
    """Mask the user name as well as the password: many services take a token as the user name."""
    return ":".join(_mask_text(part) for part in re.split(r":(?![^{}]*\})", user))


def _mask_pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    return f"{name}={_mask_text(value)}" if sign else _mask_text(pair)


def _mask_text(text: str) -> str:
    """Keep placeholders, and put `MASK` in place of the text around them."""
    return "".join(
        part if _PLACEHOLDER.fullmatch(part) or part.strip() in _HARMLESS_WORDS else MASK
        for part in _PLACEHOLDER.split(text)
    )
