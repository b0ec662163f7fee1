"""Sends one request as a worker does: by the engine of its spec, with a lease of one index."""

import asyncio
import codecs
import logging
import ssl
from dataclasses import dataclass, replace

from oku_cli.replay.run_request import RunRequest, make_single
from oku_cli.views.request_view import ShownAnswer, ShownOutcome
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.http_client.tls import build_tls
from oku_core.messaging.lease import Lease
from oku_core.process.redaction import redact, redact_beginning
from oku_core.process.supervision import Supervisor
from oku_core.spec.secrets import SpecSources
from oku_workers.engines.contract.engine_context import EngineContext
from oku_workers.engines.engine_registry import build_engine
from oku_workers.engines.http.answer_checks import ReceivedAnswer, decode_body, showing_answers
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

SHOWN_BODY_BYTES = 16 << 10
"""How much of the body of an answer is shown."""


@dataclass(frozen=True)
class PreparedRequest:
    """A request that can be sent from here.

    Attributes:
        request: with the text of its body and with its secrets.
        tls: how to speak TLS.
    """

    request: RunRequest
    tls: ssl.SSLContext | None


async def prepare(request: RunRequest, sources: SpecSources) -> PreparedRequest:
    """Read what a request needs of this machine.

    Args:
        request: with the text of its body.
        sources: the files and secrets that its spec names.

    Raises:
        EngineError, SecretError, TlsError: it cannot be sent from here.
    """
    spec = make_single(sources.secrets.fill_in(request.spec).spec)
    tls = await asyncio.to_thread(build_tls, spec, sources.files)
    return PreparedRequest(replace(request, spec=spec), tls)


async def send_once(prepared: PreparedRequest) -> ShownOutcome:
    """Send a request and wait for what becomes of it; `EngineError` if its engine cannot."""
    # What goes wrong with it is told as its outcome, not as a line of a log.
    logging.getLogger("oku_workers").addHandler(logging.NullHandler())
    request, answers, feed = prepared.request, list[ReceivedAnswer](), Feed()
    with showing_answers(answers.append):
        context = EngineContext(tls=prepared.tls, rows=request.build_rows())
        engine = build_engine(request.spec, feed, Supervisor(), context)
    lease = Lease(id="replay", run=request.run, ranges=[(request.index, request.index + 1)], limit=1)
    execution = Execution(lease, request.spec, asyncio.get_running_loop().create_future())
    await engine.open()
    engine.start()
    try:
        feed.add(execution)
        await execution.finished
    finally:
        await engine.close()
        feed.close()
    return _describe(execution, answers)


def _describe(execution: Execution, answers: list[ReceivedAnswer]) -> ShownOutcome:
    [tally] = execution.tallies
    outcome = OUTCOMES[tally.outcomes.index(1)]
    reasons = [counted.reason for counted in tally.failures.build_reasons()]
    is_answered = bool(sum(tally.statuses.values()))
    return ShownOutcome(
        outcome=outcome,
        reason="" if outcome is Outcome.OK else redact(reasons[0]),
        time_ms=tally.latency.max_us / 1000 if is_answered else None,
        answer=_show(answers[-1]) if answers else None,
    )


def _show(answer: ReceivedAnswer) -> ShownAnswer:
    # `splitlines` would also split at bytes of a value that are none of a line end, such as 0x85.
    line, *headers = answer.head.decode("latin-1").strip().replace("\r\n", "\n").split("\n")
    body = decode_body(answer.head, answer.body)
    return ShownAnswer(
        status=answer.status,
        line=redact(line, queries=False),
        headers=[
            (name, redact(value.strip(), queries=False))
            for name, _, value in (header.partition(":") for header in headers)
        ],
        body=None if body is None else _read_text(body),
        body_bytes=answer.received,
        is_whole=len(body or b"") <= SHOWN_BODY_BYTES and len(answer.body) == answer.received,
    )


def _read_text(body: bytes) -> str | None:
    """The beginning of a body as text; None if it is none."""
    # A character may be cut; only one that is not at the end makes it something else than text.
    decode = codecs.getincrementaldecoder("utf-8")().decode
    try:
        text = decode(body[:SHOWN_BODY_BYTES])
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    is_whole = len(body) <= SHOWN_BODY_BYTES
    return redact(text, queries=False) if is_whole else redact_beginning(text, queries=False)[0]
