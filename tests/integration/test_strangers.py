"""Other users of the machine: what they learn at the ports of a local stack, and what it is worth to them.

They see each port that listens, have no token, and may send anything.
"""

import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import run_coordinator
from tests.kit.coordinators.transactions import read
from tests.kit.free_ports import pick_port
from tests.kit.requirement import miss
from tests.kit.runs.account import assert_completed, list_flags
from tests.kit.runs.local_run import LocalRun, Start
from tests.kit.unprivileged import NOBODY
from tests.kit.workers.worker_process import run_worker

from oku_coordinator.api.file_routes import build_download_api, build_run_file_routes, build_upload_routes
from oku_coordinator.api.routes import build_api
from oku_coordinator.files.file_store import FileStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables.run_table import fetch_runs
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.messaging.signing import Signer

REQUESTS = 1000
NAME = "what-is-tested-is-nobodys-business"


def list_paths(folder: Path) -> list[str]:
    """The path of every call that a coordinator or a delay server has, for the newest run."""
    store = FileStore(folder / "no files")
    metrics = Metrics()
    api = build_api(None, metrics, "token", Troubles())  # type: ignore[arg-type]  # nothing is called
    api.add_routes([*build_upload_routes(store), *build_run_file_routes(None, store)])  # type: ignore[arg-type]
    downloads = build_download_api(store, Signer(b"a key for this test"), lambda: 0.0, metrics)
    resources = [each.canonical for each in (*api.router.resources(), *downloads.router.resources())]
    paths = {path.format(run="latest", action="pause", digest="0" * 64) for path in resources}
    return sorted(paths | {"/", "/-/healthz", "/-/served", "/-/served?run=latest", "/-/"})


def list_ports(run: LocalRun) -> set[int]:
    """All TCP ports at which processes of a stack listen."""
    sockets = set()
    for pid in run.children().values():
        for file in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(str(file.readlink()).removeprefix("socket:[").removesuffix("]"))
            except FileNotFoundError:
                continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in sockets}


def ask(url: str, **headers: str) -> str:
    """What a caller without a token is answered, whatever it is."""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.headers}{error.read().decode()}"


def test_a_stranger_learns_of_no_run_and_cannot_count_for_it(start: Start, tmp_path: Path) -> None:
    """Nor does one who knows its id, perhaps from the list of processes: servers know it by another name."""
    run = start(
        "run", "-n", f"{REQUESTS}", "--rate", "200/s", "--workers", "1", "--servers", "1", "--name", NAME
    )
    run.wait_for_leases()
    ledger = Ledger(run.data_dir / "ledger.sqlite3", read_only=True)
    [row] = read(ledger, fetch_runs)
    ledger.close()
    ports = list_ports(run)
    assert len(ports) == 3, "of the API, of files, of the delay server"
    said = {
        f"{port}{path}": ask(f"http://127.0.0.1:{port}{path}")
        for port in ports
        for path in list_paths(tmp_path)
    }
    assert [place for place, text in said.items() if row.run in text or NAME in text] == []
    secret = row.count_name
    assert [place for place, text in said.items() if secret in text] == []
    for port in ports:
        ask(f"http://127.0.0.1:{port}/-/announce?run={row.run}")
        for number in range(20):
            ask(f"http://127.0.0.1:{port}/{number}", **{"Oku-Run": row.run})
    summary = run.finish()
    assert_completed(summary)
    assert not list_flags(summary) & {"unbalanced", "served_unknown"}
    assert summary["servers"]["served"] <= REQUESTS


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder for temporary files in which everybody may make some, and nobody remove those of others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # that of pytest is closed to others
        Path(folder).chmod(0o1777)
        yield Path(folder)


def test_a_folder_that_another_user_made_in_advance_keeps_no_worker_from_its_files(
    tmp_path: Path, shared: Path
) -> None:
    """The worker makes another one beside it, and leaves alone what belongs to the other user."""
    if os.geteuid() != 0:
        miss("only root can be another user")
    squatted = shared / f"oku-files-{os.geteuid()}"
    making = f"mkdir -m 0777 {squatted} {squatted}-0 && ln -s / {squatted}-1"
    subprocess.run(["sh", "-c", making], user=NOBODY, check=True)
    where = ("--files-port", str(pick_port()))
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", *where) as api,
        run_worker(broker_url, prefix=("env", f"TMPDIR={shared}")),
    ):
        body = api.upload(b"a body")
        run = api.submit(url="http://127.0.0.1:1/", requests=1, body=body)
        summary = api.wait_for_state(run, "completed")
        assert summary["accounted"] == 1
        [own] = [path for path in shared.iterdir() if path.lstat().st_uid != NOBODY]
        assert (own / body.digest).read_bytes() == b"a body"
        assert own.stat().st_mode & 0o777 == 0o700
    assert list(squatted.iterdir()) == []
