"""A worker keeps nothing of a lease that is over: no lease waits in memory for the garbage collector."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from tests.kit.workers.engines_in_memory import SPEC, Bench, build_lease, build_simulated_meter, settle
from tests.kit.workers.leftovers import without_collector

from oku_core.accounting.outcome import TIMEOUT
from oku_core.messaging.order import Stop
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.target import Expectation, Target
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineError
from oku_workers.files.file_cache import FileError

_TARGETS = Spec(
    base_url=Url("http://127.0.0.1"),
    targets=(Target(name="a", url="/a"), Target(name="b", url="/b", expect=Expectation(within_s=5.0))),
    concurrency=3,
)
_FILE = FileRef.build("0" * 64, 9, "body.bin")
_WITH_FILE = Spec(urls=SPEC.urls, concurrency=3, body=_FILE)
_CODE = Spec(engine=Engine.PYTHON, scenario=CodeFile(f"a.py{_FILE}"), concurrency=3)


async def end_well(bench: Bench) -> None:
    """All is answered, while the worker looks at what it does."""
    while bench.engine.flights or bench.runner.lease_ids:
        bench.engine.fill()
        await asyncio.sleep(0.1)
        bench.engine.answer_all()


async def end_with_failures(bench: Bench) -> None:
    """Nothing is answered."""
    bench.engine.fill()
    while bench.engine.flights:
        tally, coordinate = bench.engine.flights.pop()
        inner = tally.execution.find_inner(tally.phase, "inner")
        inner.add(TIMEOUT, 0, 10, 0)
        inner.explain(TIMEOUT, coordinate, "no answer")
        tally.fail(TIMEOUT, coordinate, "no answer")
        bench.engine.fill()


async def end_early(bench: Bench) -> None:
    """The run is stopped, and what is in flight is cut off."""
    bench.engine.fill()
    bench.runner.stop(Stop(run="r1", up_to=10**12, grace_s=0.0))


async def end_by_a_fault(bench: Bench) -> None:
    """A fault of our own, once nothing is in flight; what could be taken of the lease is not."""
    bench.engine.fill()
    [execution] = {tally.execution for tally, _ in bench.engine.flights}
    bench.engine.answer_all()
    try:
        raise ArithmeticError("a fault of our own")
    except ArithmeticError as error:
        execution.abandon(error)


async def end_unbegun(_: Bench) -> None:
    """It cannot be carried out."""


class Here:
    """Files of runs that are here."""

    settled: tuple[str, ...] = ()
    changes = 0

    async def provide(self, *_: object) -> None:
        """They are here."""
        await asyncio.sleep(0.1)

    def are_whole(self, _: object) -> bool:
        """Whether nobody has changed them."""
        return True

    def release(self, _: object) -> None:
        """Nobody has it."""

    def add_tickets(self, _: object) -> None:
        """They are of no use."""

    async def close(self) -> None:
        """There is nothing to close."""


class Away(Here):
    """Files of runs that cannot be fetched."""

    async def provide(self, *_: object) -> None:
        """Fail as a file cache does."""
        await super().provide()
        raise FileError("the coordinator does not give it")


CASES: dict[str, tuple[Spec, Callable[[Bench], Awaitable[None]]]] = {
    "answered": (SPEC, end_well),
    "of two targets": (_TARGETS, end_well),
    "failed": (SPEC, end_with_failures),
    "of two targets, failed": (_TARGETS, end_with_failures),
    "stopped": (SPEC, end_early),
    "abandoned": (SPEC, end_by_a_fault),
    "refused": (SPEC, end_unbegun),
    "without its files": (_WITH_FILE, end_unbegun),
    "of user code": (_CODE, end_well),
    "of user code, failed": (_CODE, end_with_failures),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_lease_that_is_over_is_gone(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """However it has ended, counting references frees it, once a progress has told of it."""
    spec, end = CASES[case]
    # pytest keeps records, and errors with them
    monkeypatch.setattr(logging.getLogger("oku_workers.leases.lease_runner"), "disabled", True)
    bench = Bench(build_simulated_meter(), Away() if spec is _WITH_FILE else Here())
    with without_collector() as list_alive:
        bench.built.error = EngineError("cacert /ca.pem cannot be used") if case == "refused" else None
        bench.take(build_lease(0, 30), spec=spec)
        await asyncio.sleep(0.2 if spec is _CODE else 0)
        await settle()
        bench.built.error = None
        assert "Execution" in list_alive()
        await end(bench)
        await asyncio.sleep(5.0)
        bench.runner.build_progress()
        assert bench.runner.lease_ids == []
        assert list_alive() == []
    await bench.close()
