"""What is made of reports, those that user code has forged among them."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.outcome import EXCEPTION, LOST, NOT_SENT, OK
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_core.user_code.messages import NO_TEXT, OUTSIDE, Report
from oku_workers.engines.user_code.handouts import Handed, Handouts
from oku_workers.engines.user_code.report_reader import ReportReader, give_back_or_end
from oku_workers.executions.execution import Execution

ITERATIONS = 4
NUMBERS = st.integers(-3, 12) | st.sampled_from(
    [200, 999, 1000, 10**6, 1 << 48, (1 << 48) + 1, 1 << 63, -(1 << 63)]
)
REPORTS = st.builds(
    Report,
    texts=st.lists(st.text(max_size=5), max_size=3),
    tracebacks=st.dictionaries(st.integers(-2, 3), st.text(max_size=5), max_size=2),
    requests=st.lists(NUMBERS, max_size=15),
    ended=st.lists(NUMBERS, max_size=15),
)


class Bench:
    """A lease of some iterations, all of which a host has in hand."""

    def __init__(self) -> None:
        loop = asyncio.new_event_loop()
        lease = Lease(id="l", run="r", ranges=[(0, ITERATIONS)], limit=ITERATIONS)
        self.finished: asyncio.Future[None] = loop.create_future()
        self.execution = Execution(lease, Spec(), self.finished)
        loop.close()
        self.execution.enter("")
        self.handouts = Handouts()
        self.reader = ReportReader(self.handouts, self)
        for coordinate in range(ITERATIONS):
            self.handouts.put(Handed(self.execution.tally, coordinate, 0))

    def find_execution(self) -> Execution:
        """The only one."""
        return self.execution

    def count_outcomes(self) -> int:
        """How many iterations have an outcome."""
        return sum(sum(tally.outcomes) for tally in self.execution.tallies)


@pytest.fixture
def bench() -> Bench:
    """One of its own."""
    return Bench()


def test_a_report_counts_iterations_and_requests(bench: Bench) -> None:
    """Requests outside of any iteration are counted with the first that ends."""
    requests = [0, 0, OK, 200, 1500, 10, NO_TEXT, OUTSIDE, 0, OK, 204, 900, 0, NO_TEXT]
    bench.reader.read(
        Report(texts=["login", "gone"], requests=requests, ended=[0, OK, 1, 2000, NO_TEXT])
    )  # fmt: skip
    bench.reader.read(Report(tracebacks={1: "Traceback …"}, ended=[1, EXCEPTION, 1, 2000, 1]))
    [tally] = bench.execution.tallies
    assert (tally.outcomes[OK], tally.outcomes[EXCEPTION], len(bench.handouts)) == (1, 1, 2)
    inner = bench.execution.find_inner("", "login")
    assert (inner.count, inner.statuses) == (2, {200: 1, 204: 1})


@pytest.mark.parametrize(
    "forged",
    [
        Report(ended=[9, OK, 1, 1, NO_TEXT]),
        Report(ended=[0, OK, 1, -1, NO_TEXT]),
        Report(ended=[0, OK, 1 << 62, 1, NO_TEXT]),
        Report(ended=[0, OK, 1, 1 << 60, NO_TEXT]),
        Report(ended=[0, 7, 1, 1, NO_TEXT]),
        Report(ended=[0, EXCEPTION, 1, 1, 5]),
        Report(ended=[0, OK, 1]),
        Report(texts=["a"], requests=[0, 0, OK, 200, -1, 0, NO_TEXT]),
        Report(texts=["a"], requests=[0, 0, OK, 200, 1, 1 << 60, NO_TEXT]),
        Report(texts=["a"], requests=[0, 0, OK, 1000, 1, 1, NO_TEXT]),
        Report(texts=["a"], requests=[0, 0, 99, 200, 1, 1, NO_TEXT]),
        Report(texts=["a"], requests=[0, 0, -1, 200, 1, 1, NO_TEXT]),
        Report(texts=["a"], requests=[OUTSIDE, 0, NOT_SENT, 0, 1, 0, NO_TEXT]),
        Report(texts=["a"], requests=[0, 0, LOST, 0, 1, 0, NO_TEXT]),
        Report(cpu_us=-1),
        Report(busy_us=1 << 60),
        Report(late_us=-1),
        Report(texts=[str(number) for number in range(2_001)]),
    ],
)
def test_what_no_host_says_is_refused(bench: Bench, forged: Report) -> None:
    """And no iteration is lost with it: all are still in hand, to be given back."""
    with pytest.raises(ValueError, match=r"."):
        bench.reader.read(forged)
    assert len(bench.handouts) == ITERATIONS


@given(reports=st.lists(REPORTS, max_size=3))
def test_each_iteration_ends_once_whatever_a_host_says(reports: list[Report]) -> None:
    """It has an outcome, or is given back, with the end of the host at the latest."""
    bench = Bench()
    try:
        for report in reports:
            bench.reader.read(report)
    except ValueError:
        pass
    for slot, handed in bench.handouts.pop_all():
        give_back_or_end(handed, slot, None)
    assert bench.count_outcomes() + len(bench.execution.given_back) == ITERATIONS
    assert bench.execution.ended == ITERATIONS
