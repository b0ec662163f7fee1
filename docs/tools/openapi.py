"""Builds the OpenAPI document of the API from the table of spec fields and the types that the API sends."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from docs.tools.version import VERSION

from oku_coordinator.api.routes import MOST_LISTED
from oku_core.accounting.interval import Slice
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event
from oku_core.results.lease_span import LeaseSpan
from oku_core.results.run_period import RunPeriod
from oku_core.results.sample import Sample
from oku_core.results.summary import Summary
from oku_core.results.tick import Tick
from oku_core.schedule.arrivals import Arrivals
from oku_core.spec.fields import FIELDS, Field, describe_default
from oku_core.spec.spec import Engine
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.late import SEND
from oku_core.spec.values.stage import LONGEST_STAGE_NAME, MOST_IN_FLIGHT

Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_TEXT: Json = {"type": "string"}
_DURATION: Json = {
    "anyOf": [{"type": "string", "examples": ["500ms", "5s", "1m"]}, {"type": "number", "minimum": 0}]
}
_RATE: Json = {
    "anyOf": [{"type": "string", "examples": ["5000/s", "300/m", "1.5k/s"]}, {"type": "number", "minimum": 0}]
}
_SWITCH: Json = {"type": "boolean"}
_RUN_ID = {"name": "run", "in": "path", "required": True, "description": "The id of a run.", "schema": _TEXT}
_NOW = "Drops the requests in flight instead of letting them finish within the grace time of the run."
_RUN_REFERENCE = "Lists only the runs that this stands for: `latest`, an id, a name, or a part of an id."


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
            {"type": "object", "additionalProperties": _TEXT},
        ]
    },
    "body": _TEXT,
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
    "cacert": _TEXT,
    "cert": _TEXT,
    "key": _TEXT,
    "insecure": _SWITCH,
    "keepalive": _SWITCH,
    "proxy": {"type": "string", "examples": ["http://127.0.0.1:3128"]},
    "max-redirects": _count(0, 100),
    "cookies": _SWITCH,
}
"""What each field of a spec may be in JSON. Some of these values are still refused, with status 400."""


_HISTORY: Mapping[str, type] = {
    "periods": RunPeriod, "samples": Sample, "events": Event, "leases": LeaseSpan, "slices": Slice,
}  # fmt: skip
"""The lists of a history, with what is in each."""


def build_openapi() -> str:
    """The document, as JSON."""
    _, components = msgspec.json.schema_components([Summary, Tick, *_HISTORY.values()], ref_template=_REF)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Oku's coordinator",
            "version": VERSION,
            "description": "Submit, follow, pause, resume, cancel and delete runs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": _build_paths(),
        "components": {
            "schemas": {**components, **_build_schemas(), **_build_history()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _build_schemas() -> Json:
    nullable_time = {"type": ["string", "null"], "format": "date-time"}
    spec_properties = {
        field.key: {**FIELD_SCHEMAS[field.key], "description": _describe(field)} for field in FIELDS
    }
    listed: Json = {
        "run": {**_TEXT, "description": "Its id."},
        "name": {**_TEXT, "description": "As in its spec; empty without one."},
        "state": {"enum": [state.value for state in RunState], "description": "Its state."},
        "reason": {**_TEXT, "description": "Why it failed or is paused; else empty."},
        "requests": {"type": "integer", "description": "How many were asked for."},
        "accounted": {"type": "integer", "description": "How many have an outcome in the ledger."},
        "engine": {"enum": [engine.value for engine in Engine], "description": "What sends the requests."},
        "target": {**_TEXT, "description": "Its target, shortened if it is long."},
        "load": {**_TEXT, "description": "How it sends requests, in words."},
        "created_at": {**nullable_time, "description": "When it was submitted."},
        "started_at": {**nullable_time, "description": "When its first worker began."},
        "ended_at": {**nullable_time, "description": "When it was completed, cancelled or failed."},
        "active_s": {"type": "number", "description": "For how long it was active, pauses left out."},
    }
    return {
        "Spec": {
            "type": "object",
            "description": "A spec, under the names of the flags of `oku run`; every key is optional.",
            "properties": spec_properties,
            "additionalProperties": False,
        },
        "Run": {
            "type": "object",
            "description": "A run as it is now.",
            "required": [*listed, "spec"],
            "properties": {
                **listed,
                "spec": {"type": "object", "description": "Its spec, every key with its value."},
            },
        },
        "ListedRun": {
            "type": "object",
            "description": "A run in a list, without its spec.",
            "required": [*listed],
            "properties": listed,
        },
        "Outbox": {
            "type": ["object", "null"],
            "description": "What waits for Loki; null without one.",
            "required": ["lines", "bytes", "dropped", "refused", "trouble"],
            "properties": {
                "lines": {"type": "integer", "description": "How many lines wait."},
                "bytes": {"type": "integer", "description": "How much room they take in the ledger."},
                "dropped": {"type": "integer", "description": "Lines for which there was no room."},
                "refused": {"type": "integer", "description": "Lines that Loki has refused for good."},
                "trouble": {**_TEXT, "description": "Why Loki takes no lines; else empty."},
            },
        },
        "Scaling": {
            "type": ["object", "null"],
            "description": "How many pods a run may have; null outside clusters.",
            "required": ["workers", "servers", "trouble"],
            "properties": {
                "workers": {"type": "integer", "description": "Most workers of a run."},
                "servers": {"type": "integer", "description": "Most delay servers of a run."},
                "trouble": {**_TEXT, "description": "What Kubernetes refuses; else empty."},
            },
        },
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {**_TEXT, "description": "One sentence."}},
        },
    }


def _describe(field: Field) -> str:
    default = describe_default(field)
    return f"{field.help} Default: {default}." if default else field.help


def _build_history() -> Json:
    lists = {
        name: {"type": "array", "items": {"$ref": _REF.format(name=kind.__name__)}}
        for name, kind in _HISTORY.items()
    }
    return {
        "History": {
            "type": "object",
            "description": "A run and how it went.",
            "required": ["at", "summary", "spec", *lists],
            "properties": {
                "at": {"type": "number", "description": "The Unix time at which it was written."},
                "summary": {"$ref": _REF.format(name="Summary")},
                "spec": {"type": "object", "description": "Its spec, every key with its value."},
                **lists,
            },
        }
    }


def _build_paths() -> Json:
    run = {"$ref": "#/components/schemas/Run"}
    summary = {"$ref": "#/components/schemas/Summary"}
    history = {"$ref": "#/components/schemas/History"}
    return {
        "/api/runs": {
            "get": {
                **_call(
                    "List runs, newest first; the header `Link` leads to the next page.",
                    {"200": _json({"type": "array", "items": {"$ref": "#/components/schemas/ListedRun"}})},
                ),
                "parameters": [
                    _build_query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED}),
                    _build_query("after", {**_TEXT, "description": "A cursor from the header `Link`."}),
                    _build_query("run", {**_TEXT, "minLength": 1, "description": _RUN_REFERENCE}),
                ],
            },
            "post": {
                **_call("Submit a run.", {"201": _json(run)}, 400, 408, 413, 415, 429),
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Spec"}}},
                },
            },
        },
        "/api/runs/{run}": {
            "parameters": [_RUN_ID],
            "get": _call("Return the summary of a run.", {"200": _json(summary)}, 404),
            "delete": _call(
                "Delete a run that is over or paused.",
                {"204": {"description": "The run is deleted."}},
                404,
                409,
            ),
        },
        "/api/runs/{run}/history": {
            "parameters": [_RUN_ID],
            "get": _call("Stream everything that is kept of a run.", {"200": _json(history)}, 404),
        },
        "/api/runs/{run}/ticks": {
            "parameters": [_RUN_ID],
            "get": _call(
                "Stream server-sent events: `tick` each second, then `end` with the summary.",
                {"200": {"description": "Events.", "content": {"text/event-stream": {"schema": _TEXT}}}},
                404,
            ),
        },
        **{
            f"/api/runs/{{run}}/{action}": {
                "parameters": [_RUN_ID],
                "post": _call(said, {"202": _json(run)}, 404, 409, *([429] if action == "resume" else [])),
            }
            for action, said in (
                ("pause", "Pause a run."),
                ("resume", "Put a run that is paused or has failed back into the queue."),
            )
        },
        "/api/runs/{run}/cancel": {
            "parameters": [_RUN_ID],
            "post": {
                **_call("Cancel a run for good.", {"202": _json(run)}, 404, 409),
                "parameters": [_build_query("now", {"type": "boolean", "description": _NOW})],
            },
        },
        "/api/outbox": {
            "get": _call("Say what waits for Loki.", {"200": _json({"$ref": "#/components/schemas/Outbox"})})
        },
        "/api/scaling": {
            "get": _call(
                "Say how many pods a run may have.", {"200": _json({"$ref": "#/components/schemas/Scaling"})}
            )
        },
        "/healthz": {"get": _probe("Check that the process answers.", {"200": _plain()})},
        "/readyz": {"get": _probe("Check that it has a broker.", {"200": _plain(), "503": _plain()})},
        "/metrics": {"get": _probe("Return metrics for Prometheus.", {"200": _plain()})},
    }


def _call(summary: str, answers: Json, *errors: int) -> Json:
    """A call that needs the token, with its own errors and those that every call may have."""
    failed = _json({"$ref": "#/components/schemas/Error"})
    return {
        "summary": summary,
        "responses": {**answers, **{str(status): failed for status in sorted({*errors, 400, 401, 503})}},
    }


def _build_query(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "schema": schema}


def _probe(summary: str, answers: Json) -> Json:
    return {"summary": summary, "security": [], "responses": answers}


def _json(schema: Json) -> Json:
    return {"description": "JSON.", "content": {"application/json": {"schema": schema}}}


def _plain() -> Json:
    return {"description": "Text.", "content": {"text/plain": {"schema": _TEXT}}}
