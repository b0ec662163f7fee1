"""The HTTP API: JSON in and out, a bearer token on all but the probes, and the metrics if they are open.

| call | does |
| --- | --- |
| `POST /api/runs` | submits a spec, with `proofs`; once for its `Idempotency-Key`, if it has one |
| `GET /api/runs?limit=N&after=CURSOR` | lists runs, newest first; the header `Link` leads to the next |
| `GET /api/runs?run=RUN` | lists the runs that `latest`, an id, a name or a part of an id stands for |
| `GET /api/runs/{run}` | the summary of a run |
| `DELETE /api/runs/{run}` | deletes a run that is over or paused |
| `GET /api/runs/{run}/tables` | its tables: a list of `Table`; with `phase=NAME`, those of a phase |
| `GET /api/runs/{run}/history` | the same with all that is kept of it: a `RunHistory` |
| `GET /api/runs/{run}/failures` | which requests failed: a `FailuresHead` with a list of `FailedRange` |
| `GET /api/runs/{run}/rows?start=I&stop=J` | the rows of its data for these indices: `RunRows` |
| `GET /api/runs/{run}/files/{digest}` | a file of a run, unless that is a key or a certificate |
| `POST /api/runs/{run}/retry` | submits a run over its failed requests |
| `POST /api/runs/{run}/pause`, `/resume`, `/cancel` | change its state; `cancel?now=true` drops requests |
| `GET /api/runs/{run}/ticks` | server-sent events: `tick` each second, `end` with the summary at rest |
| `GET /api/files/{digest}`, `PUT …` | the state of a file, and one more piece of it |
| `GET /api/outbox` | lines waiting for Loki, `Publisher.describe`; null without Loki |
| `GET /api/scaling` | how many pods a run may have, `KubeFacade.describe`; null outside a cluster |
| `GET /healthz`, `/readyz`, `/metrics` | for the kubelet and for Prometheus |
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from oku_coordinator.api.authentication import require_token
from oku_coordinator.api.responses import (
    Handler,
    TooManyFollowersError,
    build_follower,
    stream_pieces,
)
from oku_coordinator.files.file_store import DigestError, FileTooLargeError, NoRoomError
from oku_coordinator.files.uploads import OffsetError
from oku_coordinator.ledger import UnknownRunError
from oku_coordinator.ledger.storage.records import RunInUseError, RunRecord
from oku_coordinator.ledger.storage.storage_health import StorageError
from oku_coordinator.runs.file_keeper import NotUploadedError
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.readiness import QueueFullError, UserCodeRefusedError
from oku_coordinator.runs.retention import KeyTakenError, RunDeletedError
from oku_coordinator.runs.run_documents import build_row_object, build_run_object, encode_summary
from oku_coordinator.runs.runs import Runs
from oku_coordinator.telemetry.prometheus.metrics import Metrics, MetricsCache
from oku_coordinator.telemetry.publisher import Publisher
from oku_core.accounting.interval import ConservationError
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.accounting.run_state import TransitionError
from oku_core.digits import parse_digits
from oku_core.errors import UserError, format_value
from oku_core.json_reader import decode_json
from oku_core.results.failure_filter import FailureFilter
from oku_core.results.run_api import IDEMPOTENCY_KEY_HEADER, check_reference, read_idempotency_key
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.values.file_reference import PROOFS, FileClaim
from oku_core.tables.summary_tables import UnknownPhaseError, list_phase_tables, list_tables

_log = logging.getLogger(__name__)

_STATUS_BY_ERROR: Mapping[type[Exception], int] = {
    FileTooLargeError: 413,
    NoRoomError: 507,
    DigestError: 422,
    KeyTakenError: 422,
    NotUploadedError: 424,
    UserError: 400,
    OffsetError: 409,
    UnknownRunError: 404,
    UnknownPhaseError: 404,
    TransitionError: 409,
    RunInUseError: 409,
    QueueFullError: 429,
    UserCodeRefusedError: 403,
    TooManyFollowersError: 503,
    ConservationError: 500,
}
_MAX_BODY = 1 << 20
DEFAULT_LISTED, MOST_LISTED = 100, 1000
"""The number of runs in a list: by default, and at most."""
_BODY_S = 30.0
"""The longest time to receive a body."""


class Scaling(Protocol):
    """Scales pods."""

    def describe(self) -> Mapping[str, Any]:
        """How many pods a run may have."""


def build_api(
    runs: Runs,
    metrics: Metrics,
    token: str,
    troubles: Troubles,
    publisher: Publisher | None = None,
    scaling: Scaling | None = None,
) -> web.Application:
    """Build the application; callers must present the token."""
    api = web.Application(middlewares=[_answer_errors], client_max_size=_MAX_BODY)
    require_token(api, token, metrics)
    exposed = MetricsCache(metrics)

    async def show_scaling(_: web.Request) -> web.Response:
        return _json(None if scaling is None else scaling.describe())

    async def show_outbox(_: web.Request) -> web.Response:
        return _json(publisher.describe() if publisher is not None else None)

    async def probe_ready(_: web.Request) -> web.Response:
        obstacle = troubles.find_obstacle()
        return web.Response(status=503 if obstacle else 200, text=f"{obstacle or 'ok'}\n")

    async def show_metrics(request: web.Request) -> web.Response:
        body, content_type = await exposed.fetch(",".join(request.headers.getall("Accept", ())))
        return web.Response(body=body, headers={"Content-Type": content_type})

    api.add_routes(_build_run_routes(runs))
    api.add_routes(
        [
            web.get("/api/outbox", show_outbox),
            web.get("/api/scaling", show_scaling),
            web.get("/healthz", _probe),
            web.get("/readyz", probe_ready),
            web.get("/metrics", show_metrics),
        ]
    )
    return api


def _build_submission(runs: Runs) -> Handler:
    async def submit(request: web.Request) -> web.Response:
        key = _read_key(request)
        values = await _read_object(request)
        proofs = _pop_proofs(values)
        # In a thread, because it may take seconds to compile the patterns of a spec.
        spec = await asyncio.to_thread(parse_spec, Source("spec", values))
        if (known := runs.find_submitted(key, spec)) is None:
            await runs.admit(spec, proofs)
            # Another call with the same key may have come meanwhile.
            known = runs.find_submitted(key, spec)
        if known is not None:
            return _json(build_run_object(known))
        return _json(build_run_object(runs.submit(spec, key)), status=201)

    return submit


def _build_action(runs: Runs) -> Handler:
    async def act(request: web.Request) -> web.Response:
        run, action = request.match_info["run"], request.match_info["action"]
        cancel = partial(runs.cancel, at_once=_read_switch(request.query, "now"))
        actions: Mapping[str, Callable[[str], RunRecord]] = {
            "pause": runs.pause,
            "cancel": cancel,
        }
        return _json(build_run_object(actions[action](run)), status=202)

    return act


def _build_run_routes(runs: Runs) -> list[web.RouteDef]:
    async def fetch_page(request: web.Request) -> web.Response:
        most = _read_limit(request.query.get("limit", ""))
        reference = _read_reference(request.query)
        page = runs.fetch_page(most, request.query.get("after", ""), reference)
        response = _json([build_row_object(row) for row in page])
        if len(page) == most:
            same = {} if reference is None else {"run": reference}
            following = request.rel_url.with_query(limit=most, after=page[-1].cursor, **same)
            response.headers["Link"] = f'<{following}>; rel="next"'  # RFC 8288
        return response

    async def show(request: web.Request) -> web.Response:
        summary = await runs.summarize(request.match_info["run"])
        return _answer(await asyncio.to_thread(encode_summary, summary))

    async def show_tables(request: web.Request) -> web.Response:
        run, phase = request.match_info["run"], request.query.get("phase")
        load, summary = runs.fetch_spec(run), await runs.summarize(run)
        # In a thread, because a hundred phases with a hundred targets have many cells.
        build = partial(list_tables, load=load) if phase is None else partial(list_phase_tables, phase=phase)
        return _json(await asyncio.to_thread(build, summary))

    async def show_history(request: web.Request) -> web.StreamResponse:
        return await stream_pieces(request, await runs.read_history(request.match_info["run"]))

    async def show_failures(request: web.Request) -> web.StreamResponse:
        return await stream_pieces(request, await runs.read_failures(request.match_info["run"]))

    async def retry(request: web.Request) -> web.Response:
        only = _read_filter(request)
        return _json(build_run_object(runs.retry(request.match_info["run"], only)), status=201)

    async def resume(request: web.Request) -> web.Response:
        run = request.match_info["run"]
        await runs.prepare_resume(run)
        return _json(build_run_object(runs.resume(run)), status=202)

    async def delete(request: web.Request) -> web.Response:
        await runs.delete(request.match_info["run"])
        return web.Response(status=204)

    return [
        web.post("/api/runs", _build_submission(runs)),
        web.get("/api/runs", fetch_page),
        web.get("/api/runs/{run}", show),
        web.delete("/api/runs/{run}", delete),
        web.get("/api/runs/{run}/tables", show_tables),
        web.get("/api/runs/{run}/history", show_history),
        web.get("/api/runs/{run}/failures", show_failures),
        web.post("/api/runs/{run}/retry", retry),
        web.get("/api/runs/{run}/ticks", build_follower(runs)),
        web.post("/api/runs/{run}/resume", resume),
        web.post("/api/runs/{run}/{action:pause|cancel}", _build_action(runs)),
    ]


def _read_filter(request: web.Request) -> FailureFilter:
    """The failed requests that a query selects; `UserError` if there is no such outcome."""
    outcome = request.query.get("outcome")
    if outcome is not None and outcome not in OUTCOMES[1:]:
        raise UserError(f"outcome: {format_value(outcome)} is not one of {', '.join(OUTCOMES[1:])}")
    return FailureFilter(
        outcome=None if outcome is None else Outcome(outcome),
        target=request.query.get("target"),
        reasons=request.query.getall("reason", []),
    )


def _read_key(request: web.Request) -> str | None:
    given = request.headers.getall(IDEMPOTENCY_KEY_HEADER, ())
    if not given:
        return None
    try:
        return read_idempotency_key(", ".join(given))
    except ValueError as error:
        raise UserError(f"{IDEMPOTENCY_KEY_HEADER}: {error}") from error


def _read_limit(text: str) -> int:
    if not text:
        return DEFAULT_LISTED
    if limit := parse_digits(text, MOST_LISTED):
        return limit
    raise UserError(f"limit: {format_value(text)} is not between 1 and {MOST_LISTED}")


def _read_switch(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise UserError(f"{name}: {format_value(text)} is not true or false")
    return text == "true"


def _read_reference(query: Mapping[str, str]) -> str | None:
    reference = query.get("run")
    if reference is not None:
        try:
            check_reference(reference)
        except ValueError as error:
            raise UserError(f"run: {error}") from error
    return reference


async def _probe(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _read_object(request: web.Request) -> dict[str, Any]:
    if coding := request.headers.get("Content-Encoding"):
        text = f"Content-Encoding: {format_value(coding)} is not supported, send the body as it is"
        raise web.HTTPUnsupportedMediaType(reason=text)
    try:
        async with asyncio.timeout(_BODY_S):
            body = await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason=f"the body did not arrive within {_BODY_S:g} s") from None
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError):
        raise UserError("the body was cut short") from None
    try:
        values = decode_json(body)
    except ValueError as error:
        raise UserError(f"the body: {error}") from error
    if not isinstance(values, dict):
        raise UserError("the body is not a JSON object")
    return values


def _pop_proofs(values: dict[str, Any]) -> dict[str, str]:
    """Remove the proofs of files from the request; the rest is a spec."""
    proofs = values.pop(PROOFS, {})
    if not isinstance(proofs, dict):
        raise UserError(f"{PROOFS}: is not an object with a proof for each digest")
    try:
        return dict(FileClaim.read(digest, proof) for digest, proof in proofs.items())
    except ValueError as error:
        raise UserError(f"{PROOFS}: {error}") from None


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except tuple(_STATUS_BY_ERROR) as error:
        status = next(status for kind, status in _STATUS_BY_ERROR.items() if isinstance(error, kind))
        return _json({"error": str(error)}, status=status)
    except RunDeletedError as error:
        return _json({"error": str(error), "summary": msgspec.Raw(error.summary)}, status=410)
    except web.HTTPException as error:
        return _json({"error": f"{request.method} {request.path}: {error.reason}"}, status=error.status)
    except sqlite3.OperationalError as error:
        if not isinstance(error, StorageError):  # `StorageWatch` logs that once
            _log.error("the ledger cannot be used: %s", error)
        return _json({"error": f"the ledger cannot be used: {error}"}, status=503)
    except Exception:  # noqa: BLE001  # it is logged; the caller is told whose fault it is
        _log.exception("%s %s", request.method, request.path)
        return _json({"error": "this is an error in Oku; the coordinator's log has the details"}, status=500)


def _json(document: object, status: int = 200) -> web.Response:
    return _answer(msgspec.json.encode(document), status)


def _answer(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")
