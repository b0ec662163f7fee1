"""Builds the OpenAPI document of the API from the table of spec fields and the types that the API sends."""

import json
from collections.abc import Mapping

import msgspec
from docs.tools.field_schemas import FIELD_SCHEMAS, TEXT, Json
from docs.tools.version import VERSION

from oku_coordinator.api.routes import MOST_LISTED
from oku_core.accounting.interval import Slice
from oku_core.accounting.lease_state import LeaseSpan
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event
from oku_core.results.run_api import IDEMPOTENCY_KEY_HEADER, LONGEST_KEY, MOST_ROWS, FailedRange, RunPeriod
from oku_core.results.sample import Sample
from oku_core.spec.fields import FIELDS, Field, describe_default
from oku_core.spec.spec import Engine
from oku_core.spec.values.file_reference import PROOF_HEADER, PROOF_KEY, PROOFS
from oku_core.summary.summary import Summary
from oku_core.summary.tick import Tick
from oku_core.tables.table import Table

_REF = "#/components/schemas/{name}"
_RUN_ID = {"name": "run", "in": "path", "required": True, "description": "The id of a run.", "schema": TEXT}
_HEX = {**TEXT, "pattern": "^[0-9a-f]{64}$"}
_DIGEST = {
    "name": "digest",
    "in": "path",
    "required": True,
    "description": "The SHA-256 of a file, in hexadecimal.",
    "schema": _HEX,
}
_PROOF = {
    "name": PROOF_HEADER,
    "in": "header",
    "required": True,
    "description": f"The HMAC-SHA-256 of the file with the key `{PROOF_KEY.decode()}`: the caller has it.",
    "schema": _HEX,
}
_KEY = {
    "name": IDEMPOTENCY_KEY_HEADER,
    "in": "header",
    "required": False,
    "description": f"Submits the spec once for this key, of 1 to {LONGEST_KEY} characters.",
    "schema": TEXT,
}
_INDEX = {"type": "integer", "minimum": 0, "maximum": 10**15}
_BYTES = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
_NOW = "Drops the requests in flight instead of letting them finish within the grace time of the run."
_RUN_REFERENCE = "Lists only the runs that this stands for: `latest`, an id, a name, or a part of an id."
_PHASE = "Returns the table of targets in this phase alone."
_REASON = "Only requests that failed for this reason, as `reason` of a failed range has it; may be repeated."
_HISTORY: Mapping[str, type] = {
    "periods": RunPeriod, "samples": Sample, "events": Event, "leases": LeaseSpan, "slices": Slice,
}  # fmt: skip
"""Lists of a history, with what is in each."""


def build_openapi() -> str:
    """The document, as JSON."""
    shapes = [Summary, Table, Tick, FailedRange, *_HISTORY.values()]
    _, components = msgspec.json.schema_components(shapes, ref_template=_REF)
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
            "schemas": {**components, **_build_schemas(), **_build_history(), **_build_failures()},
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
        "run": {**TEXT, "description": "Its id."},
        "name": {**TEXT, "description": "As in its spec; empty without one."},
        "state": {"enum": [state.value for state in RunState], "description": "Its state."},
        "reason": {**TEXT, "description": "Why it failed or is paused; else empty."},
        "requests": {"type": "integer", "description": "How many were asked for."},
        "accounted": {"type": "integer", "description": "How many have an outcome in the ledger."},
        "ok": {"type": "integer", "description": "How many of these were ok."},
        "engine": {
            "enum": [engine.value for engine in Engine],
            "description": "The engine that sends the requests.",
        },
        "engine_reason": {**TEXT, "description": "Why a faster engine was not chosen; else empty."},
        "target": {**TEXT, "description": "Its target, shortened if it is long."},
        "load": {**TEXT, "description": "How it sends requests, in words."},
        "created_at": {**nullable_time, "description": "When it was submitted."},
        "started_at": {**nullable_time, "description": "When its first worker began."},
        "ended_at": {**nullable_time, "description": "When it was completed, cancelled or failed."},
        "active_s": {"type": "number", "description": "For how long it was active, pauses left out."},
    }
    return {
        "Spec": {
            "type": "object",
            "description": "A spec, under the names of the flags of `oku run`; every key is optional.",
            "properties": {
                **spec_properties,
                PROOFS: {
                    "type": "object",
                    "description": f"For each file of the run, by its digest, what {PROOF_HEADER} has.",
                    "propertyNames": _HEX,
                    "additionalProperties": _HEX,
                },
            },
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
                "trouble": {**TEXT, "description": "Why Loki takes no lines; else empty."},
            },
        },
        "Scaling": {
            "type": ["object", "null"],
            "description": "How many pods a run may have; null outside clusters.",
            "required": ["workers", "servers", "trouble"],
            "properties": {
                "workers": {"type": "integer", "description": "Most workers of a run."},
                "servers": {"type": "integer", "description": "Most delay servers of a run."},
                "trouble": {**TEXT, "description": "What Kubernetes refuses; else empty."},
            },
        },
        "StoredFile": {
            "type": "object",
            "description": "What there is of a file of a run.",
            "required": ["digest", "received", "is_complete"],
            "properties": {
                "digest": {**TEXT, "description": "The SHA-256 of the whole file."},
                "received": {"type": "integer", "description": "How many bytes of it are here."},
                "is_complete": {"type": "boolean", "description": "Whether that is all of it, and checked."},
            },
        },
        "RunRows": {
            "type": "object",
            "description": "Rows of the data of a run.",
            "required": ["run", "start", "rows"],
            "properties": {
                "run": {**TEXT, "description": "Its id."},
                "start": {"type": "integer", "description": "The index of the first row."},
                "rows": {
                    "type": "array",
                    "items": {"type": "object", "additionalProperties": TEXT},
                    "description": "For each index its values by their columns, as the file says.",
                },
            },
        },
        "DeletedRun": {
            "type": "object",
            "description": "How the run with a key stood when it was deleted.",
            "required": ["error", "summary"],
            "properties": {
                "error": {**TEXT, "description": "One sentence."},
                "summary": {"$ref": _REF.format(name="Summary")},
            },
        },
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {**TEXT, "description": "One sentence."}},
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
            "required": ["at", "summary", "spec", "extent", *lists, "again"],
            "properties": {
                "at": {"type": "number", "description": "The Unix time at which it was written."},
                "summary": {"$ref": _REF.format(name="Summary")},
                "spec": {"type": "object", "description": "Its spec, every key with its value."},
                "extent": {"type": "integer", "description": "The index behind the last one that is shown."},
                **lists,
                "again": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                    "description": "Ranges of which requests may have been sent more than once.",
                },
            },
        }
    }


def _build_failures() -> Json:
    head: Json = {
        "run": {**TEXT, "description": "Its id."},
        "state": {"enum": [state.value for state in RunState], "description": "Its state."},
        "requests": {"type": "integer", "description": "How many are accounted and not ok."},
        "unlisted": {"type": "integer", "description": "How many of them are in no range."},
        "spec": {"type": "object", "description": "Its spec, every key with its value."},
    }
    ranges = {"type": "array", "items": {"$ref": _REF.format(name="FailedRange")}}
    return {
        "Failures": {
            "type": "object",
            "description": "Which requests of a run failed, in the order of their indices.",
            "required": [*head, "failures"],
            "properties": {**head, "failures": ranges},
        }
    }


def _build_query(name: str, schema: Json, *, is_required: bool = False) -> Json:
    required = {"required": True} if is_required else {}
    return {"name": name, "in": "query", **required, "schema": schema}


_FILTERS = [
    _build_query("outcome", {"enum": [*OUTCOMES[1:]], "description": "Only requests with this outcome."}),
    _build_query("target", {**TEXT, "description": "Only requests of this target."}),
    _build_query("reason", {"type": "array", "items": TEXT, "description": _REASON}),
]


def _build_paths() -> Json:
    run = {"$ref": "#/components/schemas/Run"}
    summary = {"$ref": "#/components/schemas/Summary"}
    history = {"$ref": "#/components/schemas/History"}
    stored = {"$ref": "#/components/schemas/StoredFile"}
    return {
        "/api/runs": {
            "get": {
                **_call(
                    "List runs, newest first; the header `Link` leads to the next page.",
                    {"200": _json({"type": "array", "items": {"$ref": "#/components/schemas/ListedRun"}})},
                ),
                "parameters": [
                    _build_query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED}),
                    _build_query("after", {**TEXT, "description": "A cursor from the header `Link`."}),
                    _build_query("run", {**TEXT, "minLength": 1, "description": _RUN_REFERENCE}),
                ],
            },
            "post": {
                **_call(
                    "Submit a run, unless a run has the key.",
                    {
                        "200": {**_json(run), "description": "The run that has the key."},
                        "201": {**_json(run), "description": "The new run."},
                        "410": _json({"$ref": "#/components/schemas/DeletedRun"}),
                    },
                    400,
                    403,
                    408,
                    413,
                    415,
                    422,
                    424,
                    429,
                ),
                "parameters": [_KEY],
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
        "/api/runs/{run}/tables": {
            "parameters": [_RUN_ID],
            "get": {
                **_call(
                    "Return the tables of a run that have rows, as its report shows them.",
                    {"200": _json({"type": "array", "items": {"$ref": "#/components/schemas/Table"}})},
                    404,
                ),
                "parameters": [_build_query("phase", {**TEXT, "description": _PHASE})],
            },
        },
        "/api/runs/{run}/history": {
            "parameters": [_RUN_ID],
            "get": _call("Stream everything that is kept of a run.", {"200": _json(history)}, 404),
        },
        "/api/runs/{run}/failures": {
            "parameters": [_RUN_ID],
            "get": _call(
                "Stream which requests of a run failed.",
                {"200": _json({"$ref": "#/components/schemas/Failures"})},
                404,
            ),
        },
        "/api/runs/{run}/rows": {
            "parameters": [_RUN_ID],
            "get": {
                **_call(
                    f"Return the rows of its data for at most {MOST_ROWS:,} indices in a row.",
                    {"200": _json({"$ref": "#/components/schemas/RunRows"})},
                    404,
                ),
                "parameters": [
                    _build_query("start", {**_INDEX, "description": "The first index."}, is_required=True),
                    _build_query("stop", {**_INDEX, "description": "Behind the last one."}, is_required=True),
                ],
            },
        },
        "/api/runs/{run}/files/{digest}": {
            "parameters": [_RUN_ID, _DIGEST],
            "get": _call(
                "Return a file of a run, unless it is a private key or a certificate.",
                {
                    "200": {
                        "description": "The file.",
                        "content": {"application/octet-stream": {"schema": TEXT}},
                    }
                },
                404,
            ),
        },
        "/api/runs/{run}/retry": {
            "parameters": [_RUN_ID],
            "post": _call(
                "Submit a run over the failed requests of a run at rest.",
                {"201": _json(run)},
                400,
                403,
                404,
                429,
            )
            | {"parameters": _FILTERS},
        },
        "/api/runs/{run}/ticks": {
            "parameters": [_RUN_ID],
            "get": _call(
                "Stream server-sent events: `tick` each second, then `end` with the summary.",
                {"200": {"description": "Events.", "content": {"text/event-stream": {"schema": TEXT}}}},
                404,
            ),
        },
        **{
            f"/api/runs/{{run}}/{action}": {
                "parameters": [_RUN_ID],
                "post": _call(
                    said, {"202": _json(run)}, 404, 409, *([403, 429] if action == "resume" else [])
                ),
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
        "/api/files/{digest}": {
            "parameters": [_DIGEST, _PROOF],
            "get": _call("Return how much of a file of a run has been uploaded.", {"200": _json(stored)}),
            "put": {
                **_call("Upload a piece of a file.", {"200": _json(stored)}, 408, 409, 413, 422, 507),
                "parameters": [
                    _build_query("size", {**_BYTES, "description": "Of the whole file."}, is_required=True),
                    _build_query("offset", {**_BYTES, "description": "Of the piece."}, is_required=True),
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/octet-stream": {"schema": TEXT}},
                },
            },
        },
        "/api/outbox": {
            "get": _call(
                "Return the lines that wait for Loki.",
                {"200": _json({"$ref": "#/components/schemas/Outbox"})},
            )
        },
        "/api/scaling": {
            "get": _call(
                "Return how many pods a run may have.",
                {"200": _json({"$ref": "#/components/schemas/Scaling"})},
            )
        },
        "/healthz": {"get": _probe("Check that the process answers.", {"200": _plain()})},
        "/readyz": {
            "get": _probe(
                "Check that it has a broker and can use its ledger.", {"200": _plain(), "503": _plain()}
            )
        },
        "/metrics": {"get": _probe("Return metrics for Prometheus.", {"200": _metrics()})},
    }


def _call(summary: str, answers: Json, *errors: int) -> Json:
    """A call that needs the token, with its own errors and those that every call may have."""
    failed = _json({"$ref": "#/components/schemas/Error"})
    responses = {str(status): failed for status in (*errors, 400, 401, 503)} | answers
    return {"summary": summary, "responses": dict(sorted(responses.items()))}


def _probe(summary: str, answers: Json) -> Json:
    return {"summary": summary, "security": [], "responses": answers}


def _json(schema: Json) -> Json:
    return {"description": "JSON.", "content": {"application/json": {"schema": schema}}}


def _plain() -> Json:
    return {"description": "Text.", "content": {"text/plain": {"schema": TEXT}}}


def _metrics() -> Json:
    """Text or what an `Accept` header asks for."""
    protobuf = {"schema": {"type": "string", "format": "binary"}}
    content = {"text/plain": {"schema": TEXT}, "application/vnd.google.protobuf": protobuf}
    return {"description": "Metrics.", "content": content}
