"""Carries leases out: feed, engine and the leases in hand, all in one event loop.

A lease comes in by `carry_out` and leaves as its report. `stop` ends leases early: no further index, what is
in flight may finish within the grace time, the rest is given back.
"""

import asyncio
import logging
import ssl
import threading
import time

from oku_core.accounting.histogram import coarsen
from oku_core.accounting.outcome import OUTCOMES
from oku_core.messaging.codec import LeaseHead
from oku_core.messaging.lease import Lease, Report, read_lease_number
from oku_core.messaging.order import Stop
from oku_core.messaging.progress import MOST_TROUBLES, Progress
from oku_core.process.clock import SteadyClock
from oku_core.process.memory import measure_peak_rss_mb, measure_rss_mb
from oku_core.process.supervision import Supervisor
from oku_core.spec.secrets import NO_SOURCES, SecretError, SpecSources, reads_sources
from oku_core.spec.spec import Spec
from oku_workers.engines import EngineProtocol, build_engine
from oku_workers.engines.engine_error import EngineError
from oku_workers.engines.tls import build_tls, may_speak_tls
from oku_workers.engines.window import describe_lowered_window
from oku_workers.health.vitals import LagMeter
from oku_workers.leases.execution import Execution
from oku_workers.leases.feed import Feed
from oku_workers.leases.progress_meter import ProgressMeter
from oku_workers.leases.strain import StrainMeter

_log = logging.getLogger(__name__)

_FILES_TIMEOUT_S = 10.0
"""A file system that is away answers never; other runs have to go on."""


class LeaseRunner:
    """See the module. Everything but the constructor belongs to the thread of the event loop.

    Args:
        name: of the worker.
        incarnation: of its process.
        supervisor: of the tasks of its engines.
        local_address: what to send from; the system chooses unless given.
        clock: of this process.
        sources: has the files and secrets that specs name.
    """

    def __init__(
        self,
        name: str,
        incarnation: str,
        supervisor: Supervisor,
        local_address: str | None = None,
        clock: SteadyClock | None = None,
        sources: SpecSources = NO_SOURCES,
    ) -> None:
        self._name = name
        self._incarnation = incarnation
        self._supervisor = supervisor
        self._files_health = supervisor.enlist("open files")
        self._local_address = local_address
        self._clock = clock or SteadyClock()
        self._sources = sources
        self._feed = Feed()
        self._executions: dict[str, Execution] = {}
        self._under_way: set[Execution] = set()
        self._engine: EngineProtocol | None = None
        self._engine_key: _EngineKey | None = None
        self._changing_engine = asyncio.Lock()
        self._seconds = ProgressMeter()
        self._strain = StrainMeter()
        self._lag = LagMeter(lambda late_s: self._strain.look(self._executions.values(), late_s))
        self._reported_cpu_s = 0.0
        self._progress_count = 0
        self.is_stopping = False
        self._is_leaving = threading.Event()
        self.refused: set[str] = set()
        """Leases that were refused some seconds ago, and fill hands."""

    def start(self) -> None:
        """Begin to measure."""
        self._lag.start()
        self._seconds.start()

    @property
    def lease_ids(self) -> list[str]:
        """The leases in hand, those included whose report has not reached the broker."""
        return list(self._executions)

    async def run(self, lease: Lease, execution_id: str) -> Report | None:
        """Send the requests of a lease; None when it is in hand already.

        The lease counts as in hand until `let_go`.

        Raises:
            EngineError: its spec cannot be carried out here; it is not in hand any more.
        """
        if lease.id in self._executions:
            return None
        if not self._executions:
            # Start-up and idle time belong to no run.
            self._reported_cpu_s = time.process_time()
        execution = self._executions[lease.id] = Execution(
            lease, asyncio.get_running_loop().create_future(), self._clock.now
        )
        if self.is_stopping:
            execution.withdraw()
        try:
            await self._prepare_engine(execution)
            self._feed.add(execution)
            await execution.finished
        except BaseException:
            # Not in hand any more, so that the coordinator misses it and gives it to others.
            self._feed.withdraw(execution)
            self.let_go(lease.id)
            raise
        finally:
            self._under_way.discard(execution)
        return self._build_report(execution, execution_id)

    def let_go(self, lease: str) -> None:
        """The report of a lease has reached the broker."""
        execution = self._executions.pop(lease, None)
        if execution is not None:
            self._seconds.forget(execution)

    def rest(self, lease: str, seconds: float) -> None:
        """Block with a lease that was refused, until the worker is about to leave; for Celery's threads."""
        self.refused.add(lease)
        self._is_leaving.wait(seconds)
        self.refused.discard(lease)

    def stop(self, order: Stop) -> None:
        """End leases early, as ordered."""
        executions = [
            execution for execution in self._executions.values() if _is_meant(execution.lease, order)
        ]
        self._stop_executions(executions, order.grace_s)

    def stop_all(self, grace_s: float) -> None:
        """End every lease early, also those that come from now on."""
        self.is_stopping = True
        self._is_leaving.set()
        self._stop_executions(list(self._executions.values()), grace_s)

    def build_progress(self, *, coarse: bool = False) -> Progress:
        """What happened since the last call of this; coarse latencies are shorter to tell."""
        second = self._seconds.take(self._executions.values())
        lag_s = self._lag.take_worst_s()
        self._note_clock_step()
        self._progress_count += 1
        for execution in self._executions.values():
            execution.max_lag_s = max(execution.max_lag_s, lag_s)
        return Progress(
            worker=self._name,
            incarnation=self._incarnation,
            at=self._clock.now(),
            sequence=self._progress_count,
            seconds=max(round(second.seconds, 3), 0.001),
            leases={lease: list(execution.outcomes) for lease, execution in self._executions.items()},
            in_flight=self._engine.in_flight if self._engine else 0,
            outcomes=second.outcomes,
            bytes_received=second.bytes_received,
            latency=coarsen(second.latency) if coarse else second.latency,
            lag_s=round(lag_s, 4),
            cpu_share=round(second.cpu_share, 3),
            rss_mb=round(measure_rss_mb(), 1),
            stopping=self.is_stopping,
            troubles=self._supervisor.troubles[:MOST_TROUBLES],
        )

    async def close(self) -> None:
        """End every lease at once and close every connection."""
        self.stop_all(0)
        self._lag.stop()
        async with self._changing_engine:
            await self._close_engine()

    async def _prepare_engine(self, execution: Execution) -> None:
        """Have an engine for the spec of a lease; one for another spec first finishes what it has in hand."""
        spec, key = execution.lease.spec, _build_engine_key(execution.lease)
        async with self._changing_engine:
            # A lease that is stopped meanwhile needs none.
            while (others := self._list_others(key)) and not execution.finished.done():
                await asyncio.wait([*others, execution.finished], return_when=asyncio.FIRST_COMPLETED)
            if execution.finished.done():
                return
            if self._engine_key != key:
                await self._close_engine()
                self._tell_lowered_window(spec)
                filled, tls = await self._read_sources(spec)
                self._engine = build_engine(filled, self._feed, self._supervisor, self._local_address, tls)
                self._engine_key = key
                self._engine.start()
            self._under_way.add(execution)

    def _tell_lowered_window(self, spec: Spec) -> None:
        """In the log, and to those who watch the run, for as long as it is so."""
        self._files_health.trouble = reason = describe_lowered_window(spec)
        if reason:
            _log.warning("%s", reason)

    async def _read_sources(self, spec: Spec) -> tuple[Spec, ssl.SSLContext | None]:
        """The spec with its secrets, and how to speak TLS for it; read in a thread, for files may block."""
        if not (may_speak_tls(spec) or reads_sources(spec)):
            return spec, None

        def read() -> tuple[Spec, ssl.SSLContext | None]:
            return self._sources.secrets.fill_in(spec), build_tls(spec, self._sources.files)

        try:
            async with asyncio.timeout(_FILES_TIMEOUT_S):
                return await asyncio.to_thread(read)
        except SecretError as error:
            raise EngineError(str(error)) from error
        except TimeoutError:
            raise EngineError(
                f"the files that the spec names could not be read within {_FILES_TIMEOUT_S:.0f} s"
            ) from None

    def _list_others(self, key: "_EngineKey") -> list[asyncio.Future[None]]:
        # Those that wait for an engine themselves are none of them: two would wait for each other.
        return [
            execution.finished for execution in self._under_way if _build_engine_key(execution.lease) != key
        ]

    async def _close_engine(self) -> None:
        engine, self._engine, self._engine_key = self._engine, None, None
        if engine is not None:
            await engine.close()

    def _stop_executions(self, executions: list[Execution], grace_s: float) -> None:
        stopped = [execution for execution in executions if not execution.finished.done()]
        for execution in stopped:
            self._feed.withdraw(execution)
        if stopped:
            asyncio.get_running_loop().call_later(grace_s, self._cut_off, stopped)

    def _cut_off(self, executions: list[Execution]) -> None:
        for execution in executions:
            if execution.finished.done() or self._engine is None:
                continue
            lease, in_flight = execution.lease, execution.in_flight
            _log.info(
                "lease %s: %d requests are cut off", lease.id, in_flight,
                extra={"run": lease.run, "lease": lease.id, "requests": in_flight},
            )  # fmt: skip
            self._engine.cut_off(execution)

    def _note_clock_step(self) -> None:
        step_s = self._clock.find_step()
        if step_s is None:
            return
        _log.warning("the clock of this machine was set by %+.1f s", step_s)
        for execution in self._executions.values():
            execution.clock_step_s = max(execution.clock_step_s, abs(step_s))

    def _build_report(self, execution: Execution, execution_id: str) -> Report:
        lease = execution.lease
        self._strain.settle(execution)
        self._note_clock_step()
        new_cpu_s = time.process_time() - self._reported_cpu_s
        self._reported_cpu_s += new_cpu_s
        return Report(
            lease=lease.id,
            execution=execution_id,
            worker=self._name,
            incarnation=self._incarnation,
            start=lease.start,
            done=execution.next_index,
            unfinished=execution.unfinished,
            outcomes=execution.outcomes,
            statuses={str(status): count for status, count in execution.statuses.items()},
            bytes_received=execution.bytes_received,
            latency=execution.build_latency(),
            started_at=execution.started_at,
            ended_at=execution.ended_at,
            cpu_s=new_cpu_s,
            peak_rss_mb=measure_peak_rss_mb(),
            max_lag_s=max(execution.max_lag_s, self._lag.worst_s),
            busy_share=execution.max_busy_share,
            saturated=execution.saturated,
            lagged=execution.lagged,
            clock_step_s=execution.clock_step_s,
        )


_EngineKey = tuple[Spec, str]
"""An engine serves leases of one spec and, if that names what is read here, of one run."""


def _build_engine_key(lease: Lease) -> _EngineKey:
    return lease.spec, lease.run if reads_sources(lease.spec) else ""


def _is_meant(lease: Lease, order: Stop) -> bool:
    if lease.id in order.leases:
        return True
    return lease.run == order.run and read_lease_number(lease.id) <= order.up_to


def build_empty_report(
    lease: Lease | LeaseHead, execution_id: str, name: str, incarnation: str, now: float, refusal: str = ""
) -> Report:
    """The report of a lease that was not begun: all of it is given back.

    With a refusal, this worker gets no more of the run. `now` is Unix time.
    """
    return Report(
        lease=lease.id,
        execution=execution_id,
        worker=name,
        incarnation=incarnation,
        start=lease.start,
        done=lease.start,
        outcomes=[0] * len(OUTCOMES),
        started_at=now,
        ended_at=now,
        refusal=refusal,
    )
