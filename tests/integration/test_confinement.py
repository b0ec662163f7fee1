"""What a hostile scenario can reach of its user, in a real stack: nothing if it is confined."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.kit import hostile_scenario, unprivileged, without_landlock
from tests.kit.requirement import miss
from tests.kit.runs.local_run import OKU, is_alive, wait_until

from oku_core.process.landlock import find_version

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_SIGNALS_SINCE = 6
"""The version of Landlock that keeps signals and abstract sockets within what is confined."""
_BYSTANDER = """
import os, socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0" + sys.argv[1])
listening.listen()
print(os.getpid(), flush=True)
time.sleep(600)
"""


@dataclass
class Place:
    """A folder of a user, who runs Oku there, and another program.

    Attributes:
        folder: it has a home, a folder of temporary files, and one where `oku` is called.
        prefix: the command that becomes the user.
        bystander: the process id of the other program.
        found: what the scenario could do.
    """

    folder: Path
    prefix: list[str]
    bystander: int = 0
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """That of the user's processes, with a secret."""
        folders = {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp")}
        return {**folders, "PATH": os.environ["PATH"], "SECRET": "hunter2"}

    def try_all(self, *flags: str) -> dict[str, str]:
        """Run the hostile scenario once; what it could do."""
        with self.listening() as url:
            ended = self.run("hostile.py", "-n", "1", "-c", "1", "--host", url, *flags)
        assert self.found, ended.stdout + ended.stderr
        assert ended.returncode == 0, ended.stdout + ended.stderr
        wait_until(lambda: not is_alive(self.found["daemon"]), 10, "what the scenario left behind has ended")
        assert [path.name for path in (self.folder / "tmp").iterdir()] == []
        done: dict[str, str] = self.found["done"]
        return done

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Call `oku run` as the user."""
        return subprocess.run(
            [*self.prefix, *OKU, "run", *arguments], cwd=self.folder / "work", env=self.environment,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def write(self, name: str, text: str) -> None:
        """Make a file where `oku` is called, which the user may read."""
        path = self.folder / "work" / name
        path.write_text(text)
        path.chmod(0o644)

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Answer the scenario, until the end of the block; gives the URL."""
        place = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(json.dumps(place.describe()).encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Type"] == "application/json":
                    place.found = json.loads(body)
                self._answer(b"{}")

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()

    def describe(self) -> dict[str, Any]:
        """What there is to reach."""
        data = self.folder / "work" / ".oku"
        stack = json.loads((data / "stack.json").read_text())
        processes = {"oku run": stack["pid"], "the bystander": self.bystander, **stack["children"]}
        (data / "cache").mkdir(exist_ok=True)
        files = {
            "the token": data / "stack.json",
            "the ledger": data / "ledger.sqlite3",
            "a log": data / "logs" / "worker-1.log",
            "a private key": self.folder / "home" / "id_rsa",
            "a file of the system": Path("/etc/passwd"),
            "its own environment": Path("/proc/self/environ"),
        }
        folders = {
            "the home folder": self.folder / "home",
            "the data folder": data,
            "the cache": data / "cache",
            "the folder of temporary files": self.folder / "tmp",
            "the folder of the user": self.folder / "work",
            "the packages": Path(sys.prefix),
        }
        return {
            "processes": processes,
            "files": {name: str(path) for name, path in files.items()},
            "folders": {name: str(path) for name, path in folders.items()},
            "abstract": self.folder.name,
            "socket": str(data / "workers.sock"),
        }


@contextmanager
def run_place(*, is_root: bool) -> Iterator[Place]:
    """Makes such a place, and starts the bystander, until the end of the block."""
    if is_root and os.geteuid() != 0:
        miss("being root takes root")
    is_other = not is_root and os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(prefix="oku-test-", dir="/tmp"))
    try:
        for name in ("home", "tmp", "work"):
            (folder / name).mkdir(mode=0o700)
        (folder / "home" / "id_rsa").write_text("a key")
        shutil.copy(hostile_scenario.__file__, folder / "work" / "hostile.py")
        prefix = unprivileged.build_prefix() if is_other else []
        if is_other:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, unprivileged.NOBODY, unprivileged.NOBODY)
        place = Place(folder, prefix)
        with subprocess.Popen(
            [*prefix, sys.executable, "-c", _BYSTANDER, folder.name], stdout=subprocess.PIPE, text=True,
            env=place.environment,
        ) as bystander:  # fmt: skip
            try:
                assert bystander.stdout is not None
                place.bystander = int(bystander.stdout.readline() or "0")
                if not place.bystander:
                    miss("becoming another user takes namespaces of mounts")
                yield place
            finally:
                bystander.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("is_root", [False, True], ids=["as nobody", "as root"])
def test_confined_user_code_reaches_nothing_of_its_user(*, is_root: bool) -> None:
    """Neither files, nor memory, environment and open files of any process; it can signal none."""
    if find_version() == 0:
        miss("the kernel has no Landlock")
    with run_place(is_root=is_root) as place:
        done = place.try_all("--confine-user-code")
    if find_version() < _SIGNALS_SINCE:
        done = {name: what for name, what in done.items() if not name.startswith(("signal", "abstract"))}
    assert done == {}


def test_user_code_that_is_not_confined_reaches_what_its_user_may() -> None:
    """So the scenario does find what there is; a local run of one's own file is not confined."""
    with run_place(is_root=False) as place:
        done = place.try_all()
    assert {
        "environ of the bystander", "maps of the bystander", "fd of the bystander",
        "signal the bystander", "signal worker-1", "read a private key", "read the token",
        "read the ledger", "overwrite the ledger", "list the home folder",
        "write to the home folder", "write to the folder of temporary files", "abstract socket",
        "list processes", "look into / in setup", "environ of itself",
        "read a private key in another process",
    } <= done.keys()  # fmt: skip
    assert "hunter2" in done["environ of the bystander"]
    closed = ("oku run", "coordinator", "server", "worker-1")
    parts = ("environ", "mem", "maps", "fd")
    assert not {f"{part} of {name}" for part in parts for name in closed} & done.keys()


_TRUSTED = """
import multiprocessing, os, socket, sqlite3, ssl, subprocess, sys, tempfile, urllib.request
import aiohttp, psutil, requests
from pathlib import Path
from helper import double
from oku import Http, record

def setup():
    return Path("names.txt").read_text()

async def scenario(index, http: Http, row, setup_data):
    assert setup_data == Path("names.txt").read_text() == "tea\\n"
    assert row["name"] and double(2) == 4
    await http.get("/world", name="world")
    await http.post("/found", files={"file": "names.txt"}, name="upload")
    async with record("library"):
        urllib.request.urlopen(http_url + "/world").read()
        assert requests.get(http_url + "/world").ok
        async with aiohttp.ClientSession() as session, session.get(http_url + "/world") as answer:
            assert answer.ok
    socket.getaddrinfo("localhost", 80)
    ssl.create_default_context()
    assert not Path("/etc/ssl/certs").exists() or list(Path("/etc/ssl/certs").iterdir())
    Path("~/kept").expanduser().write_text("x")
    Path("written.txt").write_text("x")
    with tempfile.TemporaryDirectory() as folder:
        with sqlite3.connect(Path(folder, "data.sqlite3")) as database:
            database.execute("CREATE TABLE t (a)")
        Path(folder, "file").write_text("x")
        Path(folder, "file").rename("moved.txt")
    # The locks of a pool are in shared memory.
    for method in ("fork", "spawn") if os.access("/dev/shm", os.W_OK) else ():
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(abs, [-1]) == [1]
    command = [sys.executable, "-c", "import oku, tempfile; print(tempfile.gettempdir())"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.strip() == os.environ["TMPDIR"]
    assert subprocess.run("echo a > b && cat b", shell=True, capture_output=True).stdout == b"a\\n"
    psutil.virtual_memory(), psutil.cpu_count(), psutil.cpu_percent()
"""
_LOCUSTFILE = """
import requests
from locust import FastHttpUser, HttpUser, constant, task

try:
    open("/etc/passwd")
    raise AssertionError("it is not confined")
except PermissionError:
    pass

class Slow(HttpUser):
    wait_time = constant(0)

    @task
    def both(self):
        assert self.client.get("/world").ok and requests.get(self.host + "/world").ok

class Fast(FastHttpUser):
    wait_time = constant(0)

    @task
    def one(self):
        assert self.client.get("/world").status_code == 200
"""


def test_confined_user_code_can_do_what_it_is_promised() -> None:
    """It reads what it includes, imports, speaks with others, and has a home and programs of the system."""
    if find_version() == 0:
        miss("the kernel has no Landlock")
    with run_place(is_root=False) as place, place.listening() as url:
        place.write("scenario.py", _TRUSTED.replace("http_url", repr(url)))
        place.write("helper.py", "def double(number): return 2 * number\n")
        place.write("names.txt", "tea\n")
        place.write("users.csv", "name\nann\nbob\neve\nzoe\n")
        place.write("locustfile.py", _LOCUSTFILE)
        flags = ("--host", url, "--confine-user-code", "--quiet", "-n", "2", "-c", "2")
        scenario = (
            "scenario.py",
            "--include",
            "names.txt",
            "--data",
            "users.csv",
            "--iteration-timeout",
            "60s",
        )
        for code in (scenario, ("locustfile.py",)):
            ended = place.run(*code, *flags, "--workers", "1")
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert "exception" not in ended.stdout, ended.stdout


def test_a_kernel_without_landlock_is_told_of() -> None:
    """A run has a notice to its end, unless confinement is required; so has a worker a line."""
    with run_place(is_root=False) as place:
        place.write("scenario.py", "async def scenario(index): open('/etc/passwd').close()\n")
        place.prefix += [sys.executable, without_landlock.__file__]
        ended = place.run("scenario.py", "-n", "1", "--confine-user-code", "--summary-json", "summary.json")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        notice = "worker worker-1 cannot confine user code: its kernel has no Landlock"
        assert notice in json.loads((place.folder / "work" / "summary.json").read_text())["notices"]
        assert notice in ended.stdout
        refused = place.run("scenario.py", "-n", "1", "--require-confinement")
    line = "--require-confinement: the kernel has no Landlock, which confines user code"
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", f"oku: {line}\n")
    command = [
        sys.executable,
        without_landlock.__file__,
        *OKU,
        "worker",
        "--broker-url",
        "redis://127.0.0.1:9",
    ]
    worker = subprocess.run(
        [*command, "--require-confinement", "--log-format", "text"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert worker.returncode == 2
    assert line in worker.stderr
