"""Sends one request, or makes one iteration, as a worker does: by the engine of its spec."""

import asyncio
import codecs
import logging
import os
import ssl
from dataclasses import dataclass, replace

from oku_cli.replay.run_iteration import RunIteration
from oku_cli.replay.run_request import RunRequest, make_single
from oku_cli.terminal.printable import write_note
from oku_cli.views.replay_view import ShownAnswer, ShownInner, ShownIterationOutcome, ShownOutcome
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.errors import UserError
from oku_core.http_client.tls import build_tls
from oku_core.messaging.lease import Lease
from oku_core.process.redaction import redact, redact_beginning
from oku_core.process.supervision import Supervisor
from oku_core.spec.files import SpecFiles
from oku_core.spec.secrets import FilledSpec, SecretSource, SpecSources
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineProtocol
from oku_workers.engines.contract.user_code_host import EVERYTHING, Isolation, choose_environment
from oku_workers.engines.engine_registry import build_engine
from oku_workers.engines.http.answer_checks import ReceivedAnswer, decode_body, showing_answers
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed import Feed

SHOWN_BODY_BYTES = 16 << 10
"""How much of the body of an answer is shown."""


@dataclass(frozen=True)
class PreparedRequest:
    """A request that can be sent from here, with the text of its body and with its secrets."""

    request: RunRequest
    tls: ssl.SSLContext | None


async def prepare(request: RunRequest, sources: SpecSources) -> PreparedRequest:
    """Read what a request, which has the text of its body, needs of this machine.

    Raises:
        EngineError, SecretError, TlsError: it cannot be sent from here.
    """
    spec = make_single(sources.secrets.fill_in(request.spec).spec)
    tls = await asyncio.to_thread(build_tls, spec, sources.files)
    return PreparedRequest(replace(request, spec=spec), tls)


async def send_once(prepared: PreparedRequest) -> ShownOutcome:
    """Send a request and wait for its outcome; `EngineError` if its engine cannot."""
    # Its failures are shown as its outcome, not as lines of a log.
    logging.getLogger("oku_workers").addHandler(logging.NullHandler())
    request, answers, feed = prepared.request, list[ReceivedAnswer](), Feed()
    with showing_answers(answers.append):
        context = EngineContext(tls=prepared.tls, rows=request.build_rows())
        engine = build_engine(request.spec, feed, Supervisor(), context)
    execution = await _execute(request, request.spec, engine, feed)
    [tally] = execution.tallies
    outcome, reason = _find_outcome(tally)
    return ShownOutcome(
        outcome=outcome,
        reason=reason,
        time_ms=tally.latency.max_us / 1000 if sum(tally.statuses.values()) else None,
        answer=_show(answers[-1]) if answers else None,
    )


async def _execute(
    what: RunRequest | RunIteration, spec: Spec, engine: EngineProtocol, feed: Feed
) -> Execution:
    """Have an engine do one thing alone, and close it."""
    lease = Lease(id="replay", run=what.run, ranges=[(what.index, what.index + 1)], limit=1)
    execution = Execution(lease, spec, asyncio.get_running_loop().create_future())
    await engine.open()
    engine.start()
    engine.set_window(1)
    try:
        feed.add(execution)
        await execution.finished
    finally:
        await engine.close()
        feed.close()
    return execution


def _find_outcome(tally: Tally) -> tuple[Outcome, str]:
    """The outcome of one request, and the reason if it failed."""
    outcome = OUTCOMES[tally.outcomes.index(1)]
    reasons = [counted.reason for counted in tally.failures.build_reasons()]
    return outcome, "" if outcome is Outcome.OK else redact(reasons[0])


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


_USER_CODE_LOG = "oku_workers.engines.user_code.host_output"


class _Printed(logging.Handler):
    """Shows what user code prints."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of it."""
        write_note(record.getMessage())


async def iterate_once(
    iteration: RunIteration, filled: FilledSpec, secrets: SecretSource, files: SpecFiles
) -> ShownIterationOutcome:
    """Make an iteration and wait for its outcome.

    Raises:
        EngineError: user code cannot be run.
    """
    logging.getLogger("oku_workers").addHandler(logging.NullHandler())
    printed = logging.getLogger(_USER_CODE_LOG)
    printed.addHandler(_Printed(logging.INFO))
    printed.setLevel(logging.INFO)
    spec = filled.spec
    feed = Feed()
    # It is the user's own code, on the user's own machine: it sees what it would see there.
    isolation = Isolation(choose_environment(os.environ, [EVERYTHING]))
    context = EngineContext(
        find_file=files.find,
        isolation=isolation,
        secrets=(*filled.secrets, *secrets.find_visible(isolation.environment)),
    )
    engine = build_engine(spec, feed, Supervisor(), context)
    execution = await _execute(iteration, spec, engine, feed)
    return _describe_iteration(execution, engine.fault)


def _describe_iteration(execution: Execution, fault: str) -> ShownIterationOutcome:
    if not sum(execution.outcomes):
        raise UserError(fault or "the process of the user code has ended without ending the iteration")
    [tally] = execution.tallies
    outcome, reason = _find_outcome(tally)
    return ShownIterationOutcome(
        outcome=outcome,
        reason=reason,
        time_ms=tally.latency.max_us / 1000 if tally.latency.max_us else None,
        traceback=redact("".join(execution.tracebacks.values())),
        requests=[
            ShownInner(
                name=inner.name,
                requests=inner.count,
                ok=inner.outcomes[0],
                statuses={str(status): count for status, count in sorted(inner.statuses.items())},
                bytes_received=inner.bytes_received,
                longest_ms=inner.latency.max_us / 1000,
                reasons=[redact(counted.reason) for counted in inner.failures.build_reasons()],
            )
            for inner in execution.inner.values()
        ],
    )
