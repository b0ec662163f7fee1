"""Makes one iteration as a worker does: by the engine of its spec, in a process of its own."""

import asyncio
import logging
import os

from oku_cli.replay.run_iteration import RunIteration
from oku_cli.terminal.printable import write_note
from oku_cli.views.iteration_view import ShownInner, ShownIterationOutcome
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.errors import UserError
from oku_core.messaging.lease import Lease
from oku_core.process.redaction import redact
from oku_core.process.supervision import Supervisor
from oku_core.spec.files import SpecFiles, list_files
from oku_core.spec.secrets import FilledSpec, SecretSource
from oku_workers.engines.contract.engine_context import EngineContext
from oku_workers.engines.contract.host_isolation import EVERYTHING, Isolation, choose_environment
from oku_workers.engines.engine_registry import build_engine
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

_USER_CODE_LOG = "oku_workers.engines.user_code.host_output"


class _Printed(logging.Handler):
    """Shows what user code prints."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of it."""
        write_note(record.getMessage())


async def iterate_once(
    iteration: RunIteration, filled: FilledSpec, secrets: SecretSource, files: SpecFiles
) -> ShownIterationOutcome:
    """Make an iteration and wait for what becomes of it.

    Args:
        iteration: of a run.
        filled: what its engine is given.
        secrets: where its secrets are from.
        files: those that it names.

    Raises:
        EngineError: user code cannot be run.
    """
    logging.getLogger("oku_workers").addHandler(logging.NullHandler())
    printed = logging.getLogger(_USER_CODE_LOG)
    printed.addHandler(_Printed(logging.INFO))
    printed.setLevel(logging.INFO)
    spec = filled.spec
    known = {file.digest: file for file in list_files(spec)}
    feed = Feed()
    # It is the user's own code, on the user's own machine: it sees what it would see there.
    isolation = Isolation(choose_environment(os.environ, [EVERYTHING]))
    context = EngineContext(
        find_file=lambda digest: files.find(known[digest]),
        isolation=isolation,
        secrets=(*filled.secrets, *secrets.find_visible(isolation.environment)),
    )
    engine = build_engine(spec, feed, Supervisor(), context)
    lease = Lease(id="replay", run=iteration.run, ranges=[(iteration.index, iteration.index + 1)], limit=1)
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
    return _describe(execution, engine.fault)


def _describe(execution: Execution, fault: str) -> ShownIterationOutcome:
    if not sum(execution.outcomes):
        raise UserError(fault or "the process of the user code has ended without ending the iteration")
    [tally] = execution.tallies
    outcome = OUTCOMES[tally.outcomes.index(1)]
    reasons = [counted.reason for counted in tally.failures.build_reasons()]
    return ShownIterationOutcome(
        outcome=outcome,
        reason="" if outcome is Outcome.OK else redact(reasons[0]),
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
