"""What each field of a spec may be in JSON, as JSON Schema: for the OpenAPI document and the spec's page."""

from collections.abc import Mapping
from typing import Any

from oku_core.schedule.arrivals import Arrivals
from oku_core.spec.spec import Engine
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.late import SEND
from oku_core.spec.values.stage import LONGEST_STAGE_NAME, MOST_IN_FLIGHT

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
_DURATION: Json = {
    "anyOf": [{"type": "string", "examples": ["500ms", "5s", "1m"]}, {"type": "number", "minimum": 0}]
}
_RATE: Json = {
    "anyOf": [{"type": "string", "examples": ["5000/s", "300/m", "1.5k/s"]}, {"type": "number", "minimum": 0}]
}
_SWITCH: Json = {"type": "boolean"}


def _count(low: int, high: int) -> Json:
    return {
        "anyOf": [
            {"type": "integer", "minimum": low, "maximum": high},
            {"type": "string", "examples": ["10", "1e1"]},
        ]
    }


def _one_or_several(item: Json) -> Json:
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}


FIELD_SCHEMAS: Mapping[str, Json] = {
    "requests": _count(1, 10**15),
    "url": _one_or_several({"type": "string", "examples": ["http://127.0.0.1:8080/items/{i}"]}),
    "method": {"type": "string", "examples": ["GET", "POST"]},
    "header": {
        "anyOf": [
            {"type": "array", "items": {"type": "string", "examples": ["Accept: */*"]}},
            {"type": "object", "additionalProperties": TEXT},
        ]
    },
    "body": TEXT,
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
    "engine": {"enum": [engine.value for engine in Engine]},
    "timeout": _DURATION,
    "grace": _DURATION,
    "expect-status": _one_or_several(
        {
            "anyOf": [
                {"type": "string", "examples": ["200", "2xx"]},
                {"type": "integer", "minimum": 100, "maximum": 599},
            ]
        }
    ),
    "range-size": _count(1, 10**9),
    "servers": _count(1, 1_000),
    "delay": {
        "type": "string",
        "examples": [str(parse_delay(text)) for text in ("20ms", "0..3s", "exp:50ms")],
    },
    "seed": _count(0, 2**63 - 1),
    "name": {"type": "string", "maxLength": 100},
    "cacert": TEXT,
    "cert": TEXT,
    "key": TEXT,
    "insecure": _SWITCH,
    "keepalive": _SWITCH,
    "proxy": {"type": "string", "examples": ["http://127.0.0.1:3128"]},
    "max-redirects": _count(0, 100),
    "cookies": _SWITCH,
}
"""By key. Some of these values are still refused, with status 400."""
