"""Keeps secrets out of what is handed on: values of headers, parameters and fields whose names say so."""

import re
from collections.abc import Mapping
from typing import Any

from oku_core.target import INDEX_PLACEHOLDER

MASK = "***"

_NAMES = (
    r"auth|token|secret|passw|passphrase|pwd|api-?_?key|apikey|access-?_?key|private-?_?key|credential"
    r"|cookie|session|signature|\bsig\b|jwt|bearer|\bkey\b"
)
_SECRET = re.compile(_NAMES, re.IGNORECASE)
_PASSWORD = re.compile(r"(?P<user>//[^/?#@:]*):[^/?#@]*@")
_PAIR = re.compile(r"(?P<name>[\w.-]+)=(?P<value>[^&\s;]*)")
_FIELD = re.compile(r"""(?P<name>["'][\w.-]+["'])(?P<sign>\s*:\s*)(?P<value>"(?:[^"\\]|\\.)*"|[^\s,}\]]+)""")


def mask_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec under the names of users with `MASK` where a secret may stand; else it is as it was."""
    masked = dict(spec)
    if "header" in masked:
        masked["header"] = [_mask_header(header) for header in masked["header"]]
    if "url" in masked:
        masked["url"] = [_mask_url(url) for url in masked["url"]]
    if "proxy" in masked:
        masked["proxy"] = _mask_url(masked["proxy"])
    if "body" in masked:
        masked["body"] = _FIELD.sub(_mask_field, _PAIR.sub(_mask_pair, masked["body"]))
    return masked


def has_mask(spec: Mapping[str, Any], masked: Mapping[str, Any]) -> bool:
    """Whether something of the spec was hidden."""
    return dict(spec) != dict(masked)


def _mask_header(header: str) -> str:
    name, _, _ = header.partition(":")
    return f"{name}: {MASK}" if _SECRET.search(name) else header


def _mask_url(url: str) -> str:
    url = _PASSWORD.sub(rf"\g<user>:{MASK}@", url)
    address, mark, query = url.partition("?")
    return f"{address}{mark}{_PAIR.sub(_mask_pair, query)}"


def _mask_pair(match: re.Match[str]) -> str:
    return f"{match['name']}={MASK}" if _is_secret(match) else match[0]


def _mask_field(match: re.Match[str]) -> str:
    return f'{match["name"]}{match["sign"]}"{MASK}"' if _is_secret(match) else match[0]


def _is_secret(match: re.Match[str]) -> bool:
    return bool(_SECRET.search(match["name"])) and match["value"].strip("\"'") != INDEX_PLACEHOLDER
