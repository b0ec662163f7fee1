"""What each field of a spec may be in JSON, as JSON Schema: for the OpenAPI document and the spec's page."""

from collections.abc import Mapping
from typing import Any

from oku_core.data.data_format import DataFormat
from oku_core.schedule.stage import Arrivals
from oku_core.spec.spec import AUTO_ENGINE, Engine, Hook
from oku_core.spec.target import HEAVIEST, MOST_TARGETS
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.load_values import LONGEST_STAGE_NAME, MOST_IN_FLIGHT, NEVER, SEND
from oku_core.spec.values.scalar import LONGEST_NAME

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
_DURATION: Json = {
    "anyOf": [{"type": "string", "examples": ["500ms", "5s", "1m"]}, {"type": "number", "minimum": 0}]
}
_RATE: Json = {
    "anyOf": [{"type": "string", "examples": ["5000/s", "300/m", "1.5k/s"]}, {"type": "number", "minimum": 0}]
}
_SCALAR: Json = {"type": ["string", "number"]}
_SWITCH: Json = {"type": "boolean"}
_DIGEST: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _count(low: int, high: int) -> Json:
    return {
        "anyOf": [
            {"type": "integer", "minimum": low, "maximum": high},
            {"type": "string", "examples": ["10", "1e1"]},
        ]
    }


def _one_or_several(item: Json) -> Json:
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


def _headers(example: str, least: int = 0) -> Json:
    return {
        "anyOf": [
            {"type": "array", "items": {"type": "string", "examples": [example]}, "minItems": least},
            {"type": "object", "additionalProperties": _SCALAR, "minProperties": least},
        ]
    }


_METHOD: Json = {"type": "string", "examples": ["GET", "POST"]}
_STATUS = _one_or_several(
    {
        "anyOf": [
            {"type": "string", "examples": ["200", "2xx"]},
            {"type": "integer", "minimum": 100, "maximum": 599},
        ]
    }
)
_EXPECTATION: Mapping[str, Json] = {
    "status": _STATUS,
    "body": _one_or_several({"anyOf": [{"type": "string", "minLength": 1}, {"type": "number"}]}),
    "match": _one_or_several({"type": "string", "examples": ['"total": [0-9]+']}),
    "json": {
        "anyOf": [
            {"type": "string", "examples": ["/user/id=17"]},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {"type": "object", "propertyNames": {"pattern": "^(/[^=]*)?$"}, "minProperties": 1},
        ]
    },
    "header": _headers("X-Cache: HIT", 1),
    "size": _one_or_several(
        {
            "anyOf": [
                {"type": "string", "examples": ["1kB", "> 0", "<= 10kB"]},
                {"type": "integer", "minimum": 0},
            ]
        }
    ),
    "within": _DURATION,
}
_TARGET: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        "weight": _count(1, HEAVIEST),
        "method": _METHOD,
        "url": {"type": "string", "examples": ["/items/{i}"]},
        "header": _headers("Accept: */*"),
        "body": TEXT,
        "json": {"description": "The body as any JSON value."},
        "expect": {"type": "object", "properties": dict(_EXPECTATION), "additionalProperties": False},
    },
    "required": ["url"],
    "additionalProperties": False,
}

_CODE_FILE: Json = {
    "type": "string",
    "pattern": "^.+@sha256:[0-9a-f]{64}:[0-9]{1,15}:[^/]{1,100}$",
    "examples": [f"scenario.py@sha256:{'0' * 64}:211:scenario.py"],
}
_NAMES = _one_or_several({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})

FIELD_SCHEMAS: Mapping[str, Json] = {
    "scenario": _CODE_FILE,
    "include": _one_or_several(_CODE_FILE),
    "hooks": {"type": "array", "items": {"enum": [hook.value for hook in Hook]}},
    "iterations": _count(1, 10**15),
    "users": _count(1, 1_000_000),
    "iteration-timeout": _DURATION,
    "user-classes": _NAMES,
    "tags": _NAMES,
    "exclude-tags": _NAMES,
    "requests": _count(1, 10**15),
    "data": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "format": {"enum": [kind.value for kind in DataFormat]},
            "digest": _DIGEST,
            "size": {"type": "integer", "minimum": 1},
            "rows": {"type": "integer", "minimum": 1},
            "columns": {"type": "array", "items": TEXT, "minItems": 1},
            "index": _DIGEST,
            "repeat": _SWITCH,
        },
        "required": ["name", "format", "digest", "size", "rows", "columns", "index"],
        "additionalProperties": False,
    },
    "thresholds": _one_or_several(
        {"type": "string", "examples": ["p99 < 300ms", "ok >= 99.9%", "rate >= 0.99 of plan over 10s: abort"]}
    ),
    "url": _one_or_several({"type": "string", "examples": ["http://127.0.0.1:8080/items/{i}"]}),
    "method": _METHOD,
    "header": _headers("Accept: */*"),
    "body": TEXT,
    "base-url": {"type": "string", "examples": ["https://shop.example/api"]},
    "targets": {"type": "array", "items": _TARGET, "minItems": 1, "maxItems": MOST_TARGETS},
    **{f"expect-{key}": schema for key, schema in _EXPECTATION.items()},
    "duration": _DURATION,
    "rate": _RATE,
    "stages": _one_or_several(
        {
            "anyOf": [
                {"type": "string", "examples": ["1m:0..5000/s", "soak=10m:5000/s", "1m:0..200"]},
                {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_STAGE_NAME},
                        "for": _DURATION,
                        "rate": _RATE,
                        "concurrency": _count(0, MOST_IN_FLIGHT),
                    },
                    "required": ["for"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
    "arrivals": {"enum": [arrivals.value for arrivals in Arrivals]},
    "late": {"anyOf": [{"type": "string", "examples": ["1s", SEND]}, {"type": "number", "minimum": 0}]},
    "max-rate": _RATE,
    "warm-up": _DURATION,
    "concurrency": _count(1, 1_000_000),
    "workers": _count(1, 10_000),
    "start-within": _DURATION,
    "give-up-after": {
        "anyOf": [{"type": "string", "examples": ["30s", "5m"]}, {"type": "number", "minimum": 1}]
    },
    "engine": {"enum": [AUTO_ENGINE, *(engine.value for engine in Engine)]},
    "timeout": _DURATION,
    "grace": _DURATION,
    "stop-when-down": {
        "anyOf": [{"type": "string", "examples": ["30s", NEVER]}, {"type": "number", "minimum": 0}]
    },
    "range-size": _count(1, 10**9),
    "servers": _count(1, 1_000),
    "delay": {
        "type": "string",
        "examples": [str(parse_delay(text)) for text in ("20ms", "0..3s", "exp:50ms")],
    },
    "seed": _count(0, 2**63 - 1),
    "name": {"type": "string", "maxLength": LONGEST_NAME},
    "cacert": TEXT,
    "cert": TEXT,
    "key": TEXT,
    "insecure": _SWITCH,
    "http2": _SWITCH,
    "streams": _count(1, 10_000),
    "connections": _count(1, 100_000),
    "keepalive": _SWITCH,
    "proxy": {"type": "string", "examples": ["http://127.0.0.1:3128"]},
    "max-redirects": _count(0, 100),
    "cookies": _SWITCH,
}
"""By key. Some of these values are still refused, with status 400."""
