from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint
from oku_cli.backends.data_dir import DataDir, RunningStack, StackShape
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.backends.run_backend import RunData, RunPlace, fetch_run_spec, find_run, open_failures
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState
from oku_core.data.data_format import DataFormat
from oku_core.errors import UserError
from oku_core.results.run_api import MOST_ROWS, FailedRange, FailuresHead, RunRows
from oku_core.spec.data_file import DataFile
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec


async def test_a_run_is_looked_for_at_one_place(tmp_path: Path) -> None:
    """A coordinator that was named, else the stack that holds the data folder, else the folder's ledger."""
    endpoint = Endpoint("http://h:1", "t", ["--coordinator", "http://h:1"])
    async with RunPlace(endpoint, DataDir(tmp_path)).open() as backend:
        assert isinstance(backend, Client)
        assert backend.flags == ["--coordinator", "http://h:1"]
    folder = DataDir(tmp_path)
    with folder.held():
        shape = StackShape("digest", servers=0, delay="0s", seed=0, spreads_addresses=False)
        folder.write_stack(RunningStack("http://127.0.0.1:1", "t", 4711, {}, shape))
        async with RunPlace(None, DataDir(tmp_path)).open() as backend:
            assert isinstance(backend, Client)
            assert backend.flags == ["--data-dir", str(tmp_path)]
    async with RunPlace(None, DataDir(tmp_path)).open() as backend:
        assert isinstance(backend, LedgerBackend)
        assert backend.flags == ["--data-dir", str(tmp_path)]


RUNS = {"261101-ab": "nightly", "261102-cd": "nightly", "261103-ef": "", "261104-gh": "my * run"}


@pytest.fixture
def backend(tmp_path: Path) -> LedgerBackend:
    """A folder with four runs, two of which have the same name."""
    folder = DataDir(tmp_path / "data")
    with folder.held():
        ledger = open_ledger(folder.ledger)
        for now, (run, name) in enumerate(RUNS.items()):
            change(ledger, create_run, run, Spec(requests=10, name=name), float(now))
        ledger.close()
    return LedgerBackend(folder)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("", "RUN: is empty; give latest, an id, a name, or a part of an id"),
        ("\udcff", r"RUN: '\\udcff' is not printable text"),
        ("nightli", "data: there is no run nightli, did you mean nightly?"),
        ("261109-ab", "data: there is no run 261109-ab, did you mean 261101-ab?"),
        ("*", r"data: there is no run \*$"),
        ("x" * 500, "data: there is no run 'xxx.*xxx'$"),
        ("26110", r"data: 26110 may be 261104-gh \(pending\), .* or 261101-ab \(pending\); give the id"),
        ("nightly", r"nightly may be 261102-cd \(pending\) or 261101-ab \(pending\); give the id of one"),
    ],
)
async def test_what_is_not_one_run_is_one_line(backend: LedgerBackend, reference: str, message: str) -> None:
    """It names the runs that may be meant, the newest first."""
    with pytest.raises(UserError, match=message) as raised:
        await find_run(backend, reference)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 300


async def test_a_run_is_found(backend: LedgerBackend) -> None:
    """By `latest`, its id, its name, or a part that only its id has."""
    for reference, run in [
        ("latest", "261104-gh"),
        ("my * run", "261104-gh"),
        ("261101-ab", "261101-ab"),
        ("03", "261103-ef"),
        ("ef", "261103-ef"),
    ]:
        assert await find_run(backend, reference) == run
    # A command that only looks takes the newest of a name. A part of several ids is still not one run.
    assert await find_run(backend, "nightly", takes_newest=True) == "261102-cd"
    with pytest.raises(UserError, match="2611 may be"):
        await find_run(backend, "2611", takes_newest=True)


async def test_of_many_runs_some_are_named(tmp_path: Path) -> None:
    """The line stays one that can be read."""
    folder = DataDir(tmp_path)
    with folder.held():
        ledger = open_ledger(folder.ledger)
        for number in range(100):
            change(ledger, create_run, f"run-{number:03}", Spec(requests=10), float(number))
        ledger.close()
    with pytest.raises(UserError, match=r"run-099 \(pending\), .*run-095 \(pending\) or an older one; give"):
        await find_run(LedgerBackend(folder), "run")
    # A folder without runs says how to start one. Looking creates nothing.
    folder = DataDir(tmp_path / "none")
    with pytest.raises(UserError, match="there are no runs yet, start one with: oku run --data-dir"):
        await find_run(LedgerBackend(folder), "latest")
    assert not folder.absolute.exists()


SPEC = Spec(requests=7)
HEAD = FailuresHead(run="r1", state=RunState.COMPLETED, requests=3, unlisted=0, spec=build_mapping(SPEC))
RANGES = [
    FailedRange(start=0, stop=2, outcome=Outcome.TIMEOUT),
    FailedRange(start=4, stop=5, outcome=Outcome.LOST, target="buy"),
]


LINES = (
    msgspec.json.encode(HEAD)[:-1] + b',"failures":[',
    msgspec.json.encode(RANGES[0]),
    b"," + msgspec.json.encode(RANGES[1]),
    b"]}",
)


class Backend:
    """Gives a document, line by line, or its beginning."""

    def __init__(self, lines: Sequence[bytes] = LINES) -> None:
        self._lines = lines

    async def read_failures(self, _: str) -> AsyncGenerator[bytes]:
        """Each line."""
        for line in self._lines:
            yield line


async def test_the_head_comes_first_and_then_the_ranges() -> None:
    """They are read as they come; the spec is in the head."""
    backend: Any = Backend()
    head, ranges = await open_failures(backend, "r1")
    assert head == HEAD
    assert [failed async for failed in ranges] == RANGES
    assert await fetch_run_spec(backend, "r1") == SPEC


async def list_failed(backend: Any) -> list[FailedRange]:
    """All that a backend says of a run."""
    _, ranges = await open_failures(backend, "r1")
    return [failed async for failed in ranges]


@pytest.mark.parametrize("count", range(len(LINES)))
async def test_a_list_that_is_cut_off_is_not_taken_for_all(count: int) -> None:
    """Neither before its head nor in the middle of its ranges."""
    with pytest.raises(UserError, match="run r1: its failed requests cannot be read: the list is cut off"):
        await list_failed(Backend(LINES[:count]))


DATA = DataFile(
    name="t.csv", format=DataFormat.CSV, digest="0" * 64, size=9, rows=9, columns=("a",), index="1" * 64
)


class RowsBackend:
    """Has rows, and notes which ones are asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def fetch_rows(self, run: str, start: int, stop: int) -> RunRows:
        """Give rows."""
        self.asked.append((start, stop))
        return RunRows(run=run, start=start, rows=[{"a": str(index)} for index in range(start, stop)])


async def test_rows_that_follow_are_fetched_together() -> None:
    """A row that is known is not fetched again, and none behind the last is asked for."""
    backend: Any = RowsBackend()
    data = RunData(backend, "r1", Spec(requests=MOST_ROWS + 50, data=DATA))
    assert data.columns == ("a",)
    for index in (3, 4, 900, MOST_ROWS + 10, MOST_ROWS + 49):
        assert await data.fetch(index) == {"a": str(index)}
    assert backend.asked == [(3, MOST_ROWS + 3), (MOST_ROWS + 10, MOST_ROWS + 50)]


async def test_a_run_without_data_has_no_rows() -> None:
    """Nobody is asked."""
    backend: Any = RowsBackend()
    data = RunData(backend, "r1", Spec())
    assert (await data.fetch(3), data.columns, backend.asked) == (None, (), [])
