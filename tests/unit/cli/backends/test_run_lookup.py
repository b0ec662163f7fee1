from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.backends.run_lookup import find_run
from oku_core.errors import UserError
from oku_core.spec.spec import Spec

RUNS = {"261101-ab": "nightly", "261102-cd": "nightly", "261103-ef": "", "261104-gh": "my * run"}


@pytest.fixture
def backend(tmp_path: Path) -> LedgerBackend:
    """A folder with four runs, two of which have the same name."""
    folder = DataDir(tmp_path / "data")
    with folder.held():
        ledger = open_ledger(folder.ledger)
        for now, (run, name) in enumerate(RUNS.items()):
            ledger.runs.create(run, Spec(requests=10, name=name), float(now))
        ledger.close()
    return LedgerBackend(folder)


@pytest.mark.parametrize(
    ("reference", "run"),
    [
        ("latest", "261104-gh"),
        ("my * run", "261104-gh"),
        ("261101-ab", "261101-ab"),
        ("03", "261103-ef"),
        ("ef", "261103-ef"),
    ],
)
async def test_a_run_is_found(backend: LedgerBackend, reference: str, run: str) -> None:
    """By `latest`, its id, its name, or a part that only its id has."""
    assert await find_run(backend, reference) == run


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


async def test_a_command_that_only_looks_takes_the_newest_of_a_name(backend: LedgerBackend) -> None:
    """A part of several ids is still not one run."""
    assert await find_run(backend, "nightly", takes_newest=True) == "261102-cd"
    with pytest.raises(UserError, match="2611 may be"):
        await find_run(backend, "2611", takes_newest=True)


async def test_of_many_runs_some_are_named(tmp_path: Path) -> None:
    """The line stays one that can be read."""
    folder = DataDir(tmp_path)
    with folder.held():
        ledger = open_ledger(folder.ledger)
        for number in range(100):
            ledger.runs.create(f"run-{number:03}", Spec(requests=10), float(number))
        ledger.close()
    with pytest.raises(UserError, match=r"run-099 \(pending\), .*run-095 \(pending\) or an older one; give"):
        await find_run(LedgerBackend(folder), "run")


async def test_a_folder_without_runs_says_how_to_start_one(tmp_path: Path) -> None:
    """Looking creates nothing."""
    folder = DataDir(tmp_path / "none")
    with pytest.raises(UserError, match="there are no runs yet, start one with: oku run --data-dir"):
        await find_run(LedgerBackend(folder), "latest")
    assert not folder.absolute.exists()
