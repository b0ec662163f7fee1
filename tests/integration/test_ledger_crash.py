import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from oku_coordinator.ledger import Ledger
from oku_core.accounting.interval import SliceState
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec

LEASE = 5
KILLS = 12

# A coordinator without anything but its ledger: it says a lease only after the commit of its report.
WRITER = """
import sys
from pathlib import Path
from oku_coordinator.ledger import Ledger
from oku_core.accounting.histogram import Histogram
from oku_core.messaging.lease import Claim, Report

ledger = Ledger(Path(sys.argv[1]))
latency = Histogram()
for _ in range(5):
    latency.record(1000)
while leases := ledger.leases.cut("r1", [lambda _: 5], 1.0):
    lease = leases[0]
    names = {"lease": lease.id, "execution": "e1", "worker": "w1", "incarnation": "b1"}
    report = Report(
        **names, start=lease.start, done=lease.stop, outcomes=[5, 0, 0, 0, 0, 0], statuses={"200": 5},
        latency=latency.build_latency(), started_at=1.0, ended_at=2.0,
    )
    ledger.leases.apply([Claim(**names, at=1.0), report], 2.0)
    print(lease.id, lease.start, flush=True)
print("end", flush=True)
"""


def create_run(path: Path, requests: int) -> None:
    """A ledger with a run that has begun."""
    ledger = Ledger(path)
    ledger.runs.create("r1", Spec(requests=requests), 0.0)
    ledger.runs.change_state("r1", RunState.RUNNING, 1.0)
    ledger.close()


def write_until_killed(path: Path, lines: int) -> list[tuple[str, int]]:
    """Let a writer work and kill it once it has reported so many leases; gives what it reported."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(lines)]
    writer.kill()
    said += writer.stdout.readlines()
    writer.stdout.close()
    assert writer.wait() == -9
    # The kill may cut the last line.
    return [(lease, int(start)) for lease, start in (line.split() for line in said if line.endswith("\n"))]


def find_leases(path: Path, state: str) -> Iterator[str]:
    """The leases in a state, as the file has them."""
    database = sqlite3.connect(path)
    yield from (row[0] for row in database.execute("SELECT id FROM leases WHERE state = ?", (state,)))
    database.close()


def test_a_kill_in_the_midst_of_commits_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """However often that happens, every acknowledged report is there once, and the account balances."""
    path = tmp_path / "ledger.sqlite3"
    create_run(path, 4000)
    dice = random.Random(7)
    acknowledged: dict[str, int] = {}
    for _ in range(KILLS):
        said = write_until_killed(path, dice.randint(1, 40))
        assert not acknowledged.keys() & dict(said).keys()
        acknowledged |= said
        ledger = Ledger(path)
        lengths = ledger.check("r1")
        snapshot = ledger.runs.fetch_snapshot("r1")
        slices = ledger.leases.fetch_slices("r1")
        ledger.close()
        assert snapshot.breach is None
        accounted = [range(s.start, s.stop) for s in slices if s.state == SliceState.ACCOUNTED]
        assert all(any(start in piece for piece in accounted) for start in acknowledged.values())
        reported = set(find_leases(path, "reported"))
        assert acknowledged.keys() <= reported
        # One commit may have been made and not been said, for each kill.
        assert len(reported) <= len(acknowledged) + KILLS
        assert snapshot.account.accounted == lengths.accounted == LEASE * len(reported)
        assert lengths.leased == LEASE * len(list(find_leases(path, "active")))


def test_a_run_that_was_killed_again_and_again_is_completed_in_the_end(tmp_path: Path) -> None:
    """What was leased when the writer died is taken back and carried out by the next one."""
    path = tmp_path / "ledger.sqlite3"
    create_run(path, 1000)
    for lines in (1, 20, 3):
        write_until_killed(path, lines)
        ledger = Ledger(path)
        ledger.runs.park_interrupted(5.0, but="r1")
        assert ledger.check("r1").leased == 0
        ledger.close()
    subprocess.run([sys.executable, "-c", WRITER, str(path)], check=True, stdout=subprocess.DEVNULL)
    ledger = Ledger(path)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.accounted) == (RunState.COMPLETED, 1000)
    # At most one lease was out whenever it was killed.
    assert record.resent_at_most <= 3 * LEASE
    assert ledger.runs.fetch_snapshot("r1").breach is None
    ledger.close()
