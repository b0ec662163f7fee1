"""What a run leaves on the disk is for its owner alone, whatever his umask; folders of others are refused."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.requirement import miss
from tests.kit.runs.local_run import OKU, Start
from tests.kit.servers.delay_server import Start as StartServers

SECRET = "Bearer-of-somebody"


@pytest.fixture(autouse=True)
def _lax_umask() -> Iterator[None]:
    """Of a user who shares his files with everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def list_open(folder: Path) -> dict[str, str]:
    """What others can reach of a folder: all that is not 0600 in 0700, with its mode."""
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.lstat().st_mode for path in paths}
    return {
        str(path.relative_to(folder)): oct(mode)
        for path, mode in modes.items()
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    }


def test_all_that_a_run_writes_is_for_its_owner_alone(start: Start) -> None:
    """Ledger, WAL, the socket of the workers, logs, counts, the token and the report are private."""
    run = start("run", "--requests", "1M", "--header", f"Authorization: {SECRET}", "--delay", "10ms")
    run.wait_for_accounted(1)

    during = list_open(run.data_dir)
    files = {path.name for path in run.data_dir.rglob("*")}
    run.process.send_signal(2)
    run.finish()

    assert {"ledger.sqlite3-wal", "stack.json", "served-0.bin", "workers.sock", "coordinator.log"} <= files
    assert during == {}
    assert list_open(run.data_dir) == {}
    assert list((run.data_dir / "reports").glob("*.html"))


def test_git_sees_nothing_of_what_a_run_leaves_in_a_project(tmp_path: Path) -> None:
    """Neither in a folder of an older version, nor in a new one below another name; the user's files stay."""
    if shutil.which("git") is None:
        miss("there is no git")
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

    def git(*arguments: str) -> list[str]:
        command = ["git", *arguments]
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True).splitlines()

    git("init", "--quiet")
    (tmp_path / "main.py").touch()
    (tmp_path / ".oku").mkdir(mode=0o700)
    (tmp_path / ".oku" / "clock.json").write_text("{}")
    for flags in ((), ("--data-dir", "load/data")):
        command = [*OKU, "run", "-n", "10", "--quiet", *flags]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert (tmp_path / ".oku" / "ledger.sqlite3").exists()
    assert (tmp_path / "load" / "data" / "ledger.sqlite3").exists()
    assert git("status", "--porcelain", "--untracked-files=all") == ["?? main.py"]
    git("add", "--all")
    assert git("ls-files") == ["main.py"]


SCENARIO = """
def setup():
    return {"token": "in" + "-setup"}


async def scenario(index, row, setup_data):
    print("in" + "-print")
    assert index != 3, "in" + "-assert"
    assert setup_data["token"] == "in" + "-setup"  # in-code
"""
STORED = {
    "in-setup": {"ledger.sqlite3"},
    "in-header": {"ledger.sqlite3"},
    "in-assert": {"ledger.sqlite3", "reports"},
    "in-print": {"cache", "logs"},
    "in-code": {"files"},
    "in-row": {"files"},
    "in-include": {"files"},
}
"""What of a run is in clear text, and where: docs/operations.md and docs/scenarios.md say so."""


def test_what_is_stored_in_clear_text_is_where_the_documents_say(tmp_path: Path) -> None:
    """What `setup` returned is in the ledger, and in nothing that Oku shows."""
    (tmp_path / "scenario.py").write_text(SCENARIO)
    (tmp_path / "rows.csv").write_text("name\n" + "in-row\n" * 5)
    (tmp_path / "include.txt").write_text("in-include")
    flags = ["-n", "5", "--workers", "1", "--data", "rows.csv", "--include", "include.txt", "--json"]
    shown = ""
    for command in (
        ["run", "scenario.py", *flags, "--host", "http://127.0.0.1:1", "-H", "X-Key: in-header"],
        ["show", "latest", "--json"],
        ["report", "latest", "--json"],
        ["report", "latest", "--show-secrets", "-o", "-"],
    ):
        done = subprocess.run(
            [*OKU, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        shown += done.stdout + done.stderr
    assert "in-assert" in shown
    assert "in-setup" not in shown
    folder = tmp_path / ".oku"
    contents: dict[str, bytes] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        part = path.relative_to(folder).parts[0].removesuffix("-wal")
        contents[part] = contents.get(part, b"") + path.read_bytes()
    assert {
        text: {part for part, content in contents.items() if text.encode() in content} for text in STORED
    } == STORED


def test_all_that_a_coordinator_writes_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Files are private even in a folder and a ledger that an older Oku left open to others."""
    (tmp_path / "broker").mkdir()
    folder = tmp_path / "parent" / "data"
    folder.mkdir(parents=True, mode=0o755)
    folder.parent.chmod(0o755)
    folder.chmod(0o755)
    (folder / "ledger.sqlite3").touch(mode=0o644)
    with run_broker(tmp_path / "broker") as broker_url, run_coordinator(broker_url, folder) as api:
        api.submit(url="http://127.0.0.1:1/", header=[f"Authorization: {SECRET}"], requests=1)
        (folder / "coordinator.log").chmod(0o600)  # it is the test's
        assert SECRET.encode() in (folder / "ledger.sqlite3-wal").read_bytes()
        assert list_open(folder) == {}


def test_all_that_a_delay_server_writes_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Its counts and the file that says where it listens are private."""
    servers = StartServers(tmp_path)
    try:
        server = servers("--counts-dir", str(tmp_path / "counts"), "--processes", "2")
        assert list_open(tmp_path / "counts") == {}
        assert stat.S_IMODE((tmp_path / "server-0" / "ready").stat().st_mode) == 0o600
        assert server.address
    finally:
        servers.end()


def build_open_folder(folder: Path) -> str:
    """A folder that others may write."""
    folder.mkdir()
    folder.chmod(0o777)
    return "others may write this folder (mode 0777); chmod it to 700 if you trust what is in it"


def build_folder_of_another(folder: Path) -> str:
    """A folder of somebody else."""
    if os.geteuid() != 0:
        miss("only root can give a folder away")
    folder.mkdir(mode=0o700)
    os.chown(folder, 54_321, 54_321)
    return "belongs to user 54321, not to root"


COMMANDS = {
    "run": ["run", "--requests", "10"],
    "resume": ["resume", "x"],
    "show": ["show", "x"],
    "cancel": ["cancel", "x"],
    "report": ["report", "x"],
    "coordinator": ["coordinator", "--broker-url", "redis://h:1", "--token", TOKEN, "--log-format", "text"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("build", [build_open_folder, build_folder_of_another])
def test_a_folder_that_others_can_write_is_refused(
    tmp_path: Path, build: Callable[[Path], str], arguments: list[str]
) -> None:
    """One line says so, the exit code is 2, and nothing is created in it."""
    folder = tmp_path / "data"
    reason = build(folder)

    ended = subprocess.run(
        [*OKU, *arguments, "--data-dir", str(folder)],
        capture_output=True, text=True, timeout=30, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"oku: {folder}: {reason}\n"
    assert list(folder.iterdir()) == []


def test_a_trusted_volume_is_used_as_it_is(tmp_path: Path) -> None:
    """It keeps the mode that the kubelet gave it; the files in it are private nevertheless."""
    (tmp_path / "broker").mkdir()
    folder = tmp_path / "volume"
    build_open_folder(folder)
    flag = "--trust-data-dir"
    with run_broker(tmp_path / "broker") as broker_url, run_coordinator(broker_url, folder, flag) as api:
        api.submit(url="http://127.0.0.1:1/", requests=1)
        (folder / "coordinator.log").unlink()  # it is the test's
        assert list_open(folder) == {".": oct(stat.S_IFDIR | 0o777)}


@pytest.mark.parametrize(
    "name", ["ledger.sqlite3", "logs/worker-1.log", "stack.lock", "servers/served-0.bin"]
)
def test_no_link_in_the_folder_is_followed(tmp_path: Path, name: str) -> None:
    """Whoever created the link, what it points to is neither written nor changed."""
    goal = tmp_path / "goal"
    goal.write_bytes(b"")
    goal.chmod(0o644)
    link = tmp_path / "data" / name
    for folder in (tmp_path / "data", link.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    link.symlink_to(goal)

    ended = subprocess.run(
        [*OKU, "run", "--requests", "10", "--data-dir", "data"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert ended.returncode in (2, 3)
    assert "is not a regular file" in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr + ended.stdout
    assert (goal.read_bytes(), stat.S_IMODE(goal.stat().st_mode)) == (b"", 0o644)
