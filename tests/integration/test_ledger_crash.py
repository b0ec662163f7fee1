import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec

LEASE = 5
KILLS = 12

# A coordinator without anything but its ledger: it says how far a lease is only after the commit of that.
WRITER = """
import sys
from pathlib import Path
from tests.kit.coordinators.leases import deal_if_pending
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from oku_coordinator.ledger import Ledger

ledger = Ledger(Path(sys.argv[1]))
while lease := deal_if_pending(ledger, "r1", 5, 1.0, limit=4):
    begun = build_checkpoint(lease, 3, [1], is_final=False)
    apply_batches(ledger, [build_batch(lease, begun)], 2.0, allowance=100)
    print(lease.id, 2, flush=True)
    apply_batches(ledger, [build_batch(lease, build_checkpoint(lease, sequence=2))], 2.0)
    print(lease.id, 5, flush=True)
print("end", flush=True)
"""


def create_run(path: Path, requests: int) -> None:
    """A ledger with a run that has begun."""
    ledger = Ledger(path)
    change(ledger, lifecycle.create_run, "r1", Spec(requests=requests), 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    ledger.close()


def write_until_killed(path: Path, lines: int) -> dict[str, int]:
    """Let a writer work and kill it once it has said so much; gives what it said of each lease."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(lines)]
    writer.kill()
    said += writer.stdout.readlines()
    writer.stdout.close()
    assert writer.wait() == -9
    # The kill may cut the last line.
    pairs = [line.split() for line in said if line.endswith("\n")]
    return {lease: int(covered) for lease, covered in pairs}


def read_leases(path: Path) -> dict[str, int]:
    """How many requests each lease covers, as the file has them; leases that cover none are left out."""
    with closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT id, covered FROM leases WHERE covered > 0").fetchall())


def test_a_kill_in_the_midst_of_commits_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """However often that happens, all that was acknowledged is there once, and the account balances."""
    path = tmp_path / "ledger.sqlite3"
    create_run(path, 4000)
    dice = random.Random(7)
    acknowledged: dict[str, int] = {}
    for kills in range(1, KILLS + 1):
        said = write_until_killed(path, dice.randint(1, 60))
        assert not acknowledged.keys() & said.keys()
        acknowledged |= said
        with closing(Ledger(path)) as ledger:
            lengths = check_ledger(ledger, "r1")
            snapshot = read(ledger, fetch_snapshot, "r1")
            held = read(ledger, fetch_open_leases, "r1")
        covered = read_leases(path)
        assert snapshot.breach is None
        assert snapshot.account.accounted == lengths.accounted == sum(covered.values())
        assert all(covered[lease] >= count for lease, count in acknowledged.items())
        # One commit may have been made and not been said, for each kill.
        assert sum(covered.values()) <= sum(acknowledged.values()) + 3 * kills
        assert len(held) <= kills
        assert lengths.leased == sum(LEASE - lease.covered for lease in held)


def test_a_run_that_was_killed_again_and_again_is_completed_in_the_end(tmp_path: Path) -> None:
    """What was leased when the writer died is taken back and carried out by the next one."""
    path = tmp_path / "ledger.sqlite3"
    create_run(path, 1000)
    for lines in (1, 20, 3):
        write_until_killed(path, lines)
        with closing(Ledger(path)) as ledger:
            pause_interrupted(ledger, 5.0, but="r1")
            assert check_ledger(ledger, "r1").leased == 0
    subprocess.run([sys.executable, "-c", WRITER, str(path)], check=True, stdout=subprocess.DEVNULL)
    with closing(Ledger(path)) as ledger:
        record = read(ledger, fetch_run, "r1")
        assert (record.state, record.accounted) == (RunState.COMPLETED, 1000)
        # At most one lease was out whenever it was killed.
        assert record.resent_at_most <= 3 * LEASE
        assert read(ledger, fetch_snapshot, "r1").breach is None
