"""The processes of a stack are closed to others of their user, and their keys are nowhere else."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.faults import neighbour
from tests.kit.requirement import miss
from tests.kit.runs.local_run import OKU, Start
from tests.kit.unprivileged import NamespaceError, own_folder, run_unprivileged

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux")

_PROCESSES = ["coordinator", "run", "server", "worker-1", "worker-2"]


def attack(kills: int, **environment: str) -> dict[str, Any]:
    """What a hostile process of the same user, who has no privileges, gets of a run."""
    with own_folder() as folder:
        command = [sys.executable, neighbour.__file__, json.dumps(OKU), str(kills)]
        try:
            found: dict[str, Any] = json.loads(run_unprivileged(command, folder, environment))
        except NamespaceError as error:
            miss(f"root may mount nothing here: {error}")
    return found


def test_no_process_of_a_stack_can_be_looked_into() -> None:
    """Not even from its first instruction, when it takes the place of one that was killed."""
    found = attack(kills=3)
    assert found["attacked"] == _PROCESSES
    assert found["restarts"] == 3
    assert (found["breaches"], found["keys"]) == ([], [])
    assert found["answers"] == ["", "", ""]


def test_a_user_may_look_into_processes_by_asking_for_it() -> None:
    """Which also tells that the attacks above are such: they find all keys."""
    found = attack(kills=1, OKU_DEBUGGABLE="yes")
    ways = {breach.partition(": ")[2] for breach in found["breaches"]}
    assert {"environ", "mem", "maps", "fd", "ptrace", "process_vm_readv", "pidfd_getfd"} <= ways
    assert {breach.partition(": ")[0] for breach in found["breaches"]} == {*_PROCESSES, "newborn"}
    assert found["keys"] == ["token"]


def list_descendants(pid: int) -> Iterator[int]:
    """The process ids of the children of a process, and of theirs."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield int(child)
        yield from list_descendants(int(child))


def test_no_secret_is_in_an_argument_or_in_an_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any process that a run starts, which also includes what the user named to it as secret."""
    if os.geteuid() != 0:
        miss("only root can read the environments of processes that are closed")
    monkeypatch.setenv("SHOP_TOKEN", "secret-of-the-shop")
    monkeypatch.setenv("OKU_LOKI_TOKEN", "secret-of-loki")
    monkeypatch.setenv("OKU_TOKEN", "secret-of-another-coordinator")
    loki = ("--loki", "http://127.0.0.1:9")
    shop = ("--allow-env", "SHOP_TOKEN", "-H", "Authorization: {env:SHOP_TOKEN}")
    run = start("run", "--requests", "1M", "--delay", "1s", "--workers", "2", *loki, *shop)
    run.wait_for_leases()
    token = json.loads((run.data_dir / "stack.json").read_text())["token"]
    names = {pid: name for name, pid in run.children().items()}
    shown = {
        pid: b"\0".join(Path(f"/proc/{pid}/{file}").read_bytes() for file in ("cmdline", "environ"))
        for pid in list_descendants(run.process.pid)
    }
    assert [names.get(pid) for pid, text in shown.items() if b"PATH=" not in text] == []
    assert set(names) <= set(shown)
    for secret in (token, "secret-of", "unix://"):
        assert [pid for pid, text in shown.items() if secret.encode() in text] == [], secret
