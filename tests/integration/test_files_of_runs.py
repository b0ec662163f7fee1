"""Files of runs with real processes: uploaded, fetched by workers with tickets, and gone with their runs."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.file_claims import build_claim
from tests.kit.free_ports import pick_port
from tests.kit.runs.local_run import OKU, find_worker, run_oku, wait_until
from tests.kit.servers.delay_server import DelayServer, Start
from tests.kit.workers.worker_process import run_worker

from oku_core.messaging.credentials import TICKET_S, TICKET_SCHEME, build_ticket
from oku_core.messaging.signing import Signer
from oku_core.spec.values.file_reference import FileRef

NOT_HERE = "was not uploaded to this coordinator, or proofs has no proof that you have it"
NOBODY = "https://127.0.0.1:1"
LARGE_MB = 300
MOST_GROWTH_MB = 100
"""How much more memory a process may take at its peak than without such a file."""
SCENARIO = """
async def scenario(row, http):
    answer = await http.get(f"/{row['name']}")
    assert row["name"].startswith("row-"), row
"""
_UPLOAD = """
import asyncio, sys
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint
from oku_cli.follow.upload import read_local_file
from oku_cli.follow.upload import upload_files
from oku_core.process.resources import measure_peak_rss_mb

async def upload(url, token, path):
    async with Client(Endpoint(url, token)) as client:
        before = measure_peak_rss_mb()
        file = read_local_file(path, path)
        await upload_files(client, [file])
        print(file.reference, file.proof)
        print(measure_peak_rss_mb() - before)

asyncio.run(upload(*sys.argv[1:]))
"""


class World:
    """A broker, a coordinator that gives files at a port of its own, and a target."""

    def __init__(self, folder: Path, stack: ExitStack, target: DelayServer) -> None:
        self.folder = folder
        self.target = target
        self.data = folder / "data"
        self.broker_url = stack.enter_context(run_broker(folder))
        self._stack = stack
        self.files_port = pick_port()

    def start_coordinator(self, *flags: str) -> CoordinatorApi:
        """Start the coordinator."""
        where = ("--files-port", str(self.files_port))
        return self._stack.enter_context(run_coordinator(self.broker_url, self.data, *where, *flags))

    def start_worker(self, name: str = "w", cache: str = "cache") -> "subprocess.Popen[bytes]":
        """Start a worker, with a cache of this name."""
        flags = ("--files-cache", str(self.folder / cache))
        log = self.folder / f"{name}.log"
        return self._stack.enter_context(run_worker(self.broker_url, *flags, name=name, log=log))

    def run(self, api: CoordinatorApi, *flags: str) -> "subprocess.CompletedProcess[str]":
        """Run `oku run` at the coordinator."""
        where = ("--coordinator", api.url, "--token", TOKEN, "--json", "--quiet")
        return run_oku("run", f"{self.target.url}/{{i}}", *flags, *where, cwd=self.folder)

    def fetch(self, digest: str, ticket: str | None, scheme: str = TICKET_SCHEME) -> int:
        """The status of a call at the port of files."""
        headers = {} if ticket is None else {"Authorization": f"{scheme} {ticket}"}
        url = f"http://127.0.0.1:{self.files_port}/files/{digest}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    def list_files(self) -> list[str]:
        """What the coordinator keeps."""
        return sorted(path.name.split(".")[0] for path in (self.data / "files").glob("*"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Processes that end with the test."""
    servers = Start(tmp_path)
    with ExitStack() as stack:
        stack.callback(servers.end)
        yield World(tmp_path, stack, servers())


def write_body(folder: Path, name: str = "body.txt") -> tuple[Path, str]:
    """A body that is too large for a spec; where it is, and its digest."""
    path = folder / name
    path.write_bytes(b"0123456789abcdef" * 200_000 + name.encode())
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def read_peak_mb(pid: int) -> float:
    """The peak memory of a process."""
    peak = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert peak is not None
    return int(peak[1]) * 1024 / 1e6


def test_a_run_takes_its_file_along(world: World) -> None:
    """Two workers fetch it once each; it goes with the run, at the coordinator and at the workers."""
    path, digest = write_body(world.folder)
    api = world.start_coordinator()
    workers = [world.start_worker("w1", "cache1"), world.start_worker("w2", "cache2")]
    ended = world.run(api, "-n", "40", "-c", "2", "-w", "2", "-X", "POST", "--body", f"@{path}")
    assert ended.returncode == 0, ended.stderr
    summary = msgspec.json.decode(ended.stdout)
    assert summary["outcomes"]["ok"] == 40
    assert world.list_files() == [digest]
    held = [Path(world.folder, cache, digest) for cache in ("cache1", "cache2")]
    assert all(file.stat().st_size == path.stat().st_size for file in held)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in held)
    where = ("--coordinator", api.url, "--token", TOKEN)
    assert run_oku("rm", summary["run"], *where, cwd=world.folder).returncode == 0
    wait_until(lambda: not world.list_files(), 10, "the file is gone with its run")
    for worker in workers:
        worker.terminate()
        worker.wait(20)
    assert not any(file.exists() for file in held)


def test_what_is_there_of_a_file_is_not_sent_again(world: World) -> None:
    """An upload that was cut off goes on where it ended, also after the coordinator was restarted."""
    path, digest = write_body(world.folder)
    half = path.read_bytes()[:1_000_000]
    proof = build_claim(path.read_bytes()).proof
    with run_coordinator(world.broker_url, world.data) as api:
        size = path.stat().st_size
        status, stored = api.call("PUT", f"/api/files/{digest}?size={size}&offset=0", half, proof=proof)
        assert (status, stored["received"], stored["is_complete"]) == (200, 1_000_000, False)
    api = world.start_coordinator()
    assert api.call("GET", f"/api/files/{digest}", proof=proof)[1]["received"] == 1_000_000
    assert api.call("PUT", f"/api/files/{digest}?size={size}&offset=7", half, proof=proof)[0] == 409
    world.start_worker()
    ended = world.run(api, "-n", "4", "-X", "POST", "--body", f"@{path}")
    assert ended.returncode == 0, ended.stderr
    assert world.list_files() == [digest]


def test_a_file_that_is_not_what_its_digest_says_is_refused(world: World) -> None:
    """Nothing is left of it, and no run begins without its file."""
    api = world.start_coordinator()
    wrong = "0" * 64
    status, document = api.call("PUT", f"/api/files/{wrong}?size=3&offset=0", b"abc", proof=wrong)
    assert status == 422
    assert wrong in document["error"]
    assert world.list_files() == []
    spec = {"url": "http://127.0.0.1:1/", "cacert": str(FileRef.build(wrong, 3, "ca.pem"))}
    status, document = api.call("POST", "/api/runs", spec)
    assert (status, document["error"]) == (424, f"ca.pem: {NOT_HERE}")


def build_roles(file: FileRef, other: FileRef) -> Iterator[dict[str, Any]]:
    """Specs with a file in each role that it may have, beside another one where two are needed."""
    url, code = {"url": f"{NOBODY}/{{a}}"}, {"engine": "python", "scenario": f"a.py{other}"}
    rows = {
        "name": "rows.csv", "format": "csv", "digest": other.digest, "size": other.size, "rows": 1,
        "columns": ["a"], "index": other.digest,
    }  # fmt: skip
    yield {"url": NOBODY, "body": file}
    yield {"targets": [{"name": "a", "url": NOBODY, "body": file}]}
    yield {"url": NOBODY, "cacert": file}
    yield {"url": NOBODY, "cert": file, "key": other}
    yield {"url": NOBODY, "cert": other, "key": file}
    yield url | {"data": rows | {"digest": file.digest, "size": file.size}}
    yield url | {"data": rows | {"index": file.digest, "rows": -(-file.size // 8) * 64}}
    yield code | {"scenario": f"a.py{file}"}
    yield code | {"include": [f"b.py{file}"]}


def test_a_digest_opens_no_file_of_another_run(world: World) -> None:
    """Its spec shows it to everyone with the token; only the content is worth anything, in every role."""
    api = world.start_coordinator("--allow-user-code")
    content = b"-----BEGIN PRIVATE KEY-----\nall mine!\n-----END PRIVATE KEY-----\n"
    key, cert = api.upload(content), api.upload(b"a certificate")
    run = api.submit(url=NOBODY, cert=cert, key=key, requests=1)
    shown = api.call("GET", f"/api/runs/{run}/history")[1]["spec"]
    assert (shown["cert"], shown["key"]) == (cert, key)

    stranger = CoordinatorApi(api.url)
    own = stranger.upload(b"8 bytes.")
    right = dict([build_claim(content), build_claim(b"8 bytes.")])
    wrong = []
    for role in build_roles(FileRef(shown["key"]), own):
        given = {"requests": 1} | role
        for proofs in ({}, {own.digest: right[own.digest]}, {**right, key.digest: right[own.digest]}):
            status, answer = stranger.call("POST", "/api/runs", given | {"proofs": proofs})
            if status != 424 or not answer["error"].endswith(NOT_HERE):
                wrong.append((role, proofs, status, answer))
        if (answer := stranger.call("POST", "/api/runs", given | {"proofs": right}))[0] != 201:
            wrong.append((role, right, *answer))
    assert not wrong
    for file in (key, cert):
        assert stranger.call("GET", f"/api/runs/{run}/files/{file.digest}")[0] == 400
        probe = stranger.call("GET", f"/api/files/{file.digest}", proof="0" * 64)
        assert probe == (200, {"digest": file.digest, "received": 0, "is_complete": False})
    # The run goes on without the content: what it may use is settled.
    assert stranger.call("POST", f"/api/runs/{run}/pause")[0] == 202
    assert stranger.call("POST", f"/api/runs/{run}/resume")[0] == 202


def test_what_the_operator_does_not_allow_is_one_line(world: World) -> None:
    """A file, and all files together, have a largest size; so has the number of files of a run."""
    limits = ("--max-file-bytes", "4MB", "--max-files-bytes", "5MB", "--max-run-files", "0")
    api = world.start_coordinator(*limits)
    path, _ = write_body(world.folder)
    ended = world.run(api, "--body", f"@{path}")
    assert ended.returncode == 2
    assert "the run uses 1 files, and at most 0 are allowed (--max-run-files" in ended.stderr
    other, _ = write_body(world.folder, "other.txt")
    ended = world.run(api, "--body", f"@{other}")
    assert ended.returncode == 2
    assert "those of all runs would have 6,400,017 bytes, and at most 5,000,000 are allowed" in ended.stderr
    assert ended.stderr.count("\n") == 1
    claim = build_claim(b"x")
    place = f"/api/files/{claim.digest}?size=4000001&offset=0"
    assert api.call("PUT", place, b"x", proof=claim.proof)[0] == 413
    assert api.list_runs() == []


def test_only_a_ticket_opens_a_file(world: World) -> None:
    """That of another file, an expired one, one of another key, none, and the token of the API do not."""
    api = world.start_coordinator()
    file = api.upload(b"content")
    other = api.upload(b"another")
    signer, now = Signer(MESSAGE_KEY), time.time()
    assert world.fetch(file.digest, build_ticket(signer, file.digest, now)) == 200
    assert world.fetch(file.digest, build_ticket(signer, other.digest, now)) == 403
    assert world.fetch(file.digest, build_ticket(signer, file.digest, now - TICKET_S - 2)) == 403
    assert world.fetch(file.digest, build_ticket(Signer(b"another key of it"), file.digest, now)) == 403
    assert world.fetch(file.digest, None) == 403
    assert world.fetch(file.digest, TOKEN, "Bearer") == 403
    assert world.fetch("0" * 64, build_ticket(signer, "0" * 64, now)) == 404
    ticket = build_ticket(signer, file.digest, now)
    assert api.call("GET", "/api/runs", token=ticket)[0] == 401
    assert api.call("GET", f"/files/{file.digest}")[0] == 404


def test_a_worker_fetches_from_a_coordinator_that_was_restarted(world: World) -> None:
    """It asks until somebody answers, has the lease all the while, and goes on with what it had."""
    path, digest = write_body(world.folder)
    cache = world.folder / "cache"
    cache.mkdir(mode=0o700)
    (cache / f"{digest}.part").write_bytes(path.read_bytes()[:1_000_000])
    nowhere = ("--files-address", "127.0.0.1:1")
    where = ("--files-port", str(world.files_port))
    with run_coordinator(world.broker_url, world.data, *where, *nowhere) as api:
        world.start_worker()
        wait_until(lambda: api.read_metric("oku_workers") == 1, 30, "the worker is there")
        file = api.upload(path.read_bytes())
        run = api.submit(url=f"{world.target.url}/{{i}}", requests=20, method="POST", body=str(file))
        wait_until(lambda: any("some.bin" in each for each in api.summary(run)["notices"]), 20, "it asks")
    api = world.start_coordinator()
    summary = api.wait_for_state(run, "completed")
    assert summary["outcomes"]["ok"] == 20
    assert summary["resent_at_most"] == 0


def test_a_file_that_cannot_be_had_fails_the_run_with_the_reason(world: World) -> None:
    """Here somebody has removed it from the folder of the coordinator."""
    api = world.start_coordinator()
    file = api.upload(b"content")
    for path in (world.data / "files").glob(f"{file.digest}*"):
        path.unlink()
    world.start_worker()
    run = api.submit(url=f"{world.target.url}/", requests=20, body=str(file))
    summary = api.wait_for_state(run, "failed")
    assert "file some.bin cannot be had: the coordinator does not have it any more" in summary["reason"]


def test_a_worker_whose_cache_was_cleaned_goes_on(world: World) -> None:
    """Bodies, rows and user code are fetched again, whatever was done to them since a run before."""
    path, _ = write_body(world.folder)
    (world.folder / "rows.csv").write_text("name\n" + "".join(f"row-{i}\n" for i in range(100)))
    (world.folder / "scenario.py").write_text(SCENARIO)
    rows = ("--data", "rows.csv:repeat", "-H", "Name: {name}")
    body = ("-d", f"@{path.name}", *rows)
    code = ("--scenario", "scenario.py", "--host", world.target.url, *rows[:2])
    api = world.start_coordinator("--allow-user-code")
    world.start_worker()
    cache = world.folder / "cache"

    def find_files() -> list[Path]:
        files = [path for path in cache.iterdir() if path.is_file()]
        assert files
        return files

    def cut_all() -> None:
        for file in find_files():
            os.truncate(file, file.stat().st_size // 2)

    def overwrite_all() -> None:
        for file in find_files():
            file.write_bytes(bytes(file.stat().st_size))

    steps: list[tuple[tuple[str, ...], Callable[[], object]]] = [
        (body, lambda: shutil.rmtree(cache)),
        ((*body, "--engine", "httptools"), cut_all),
        (body, overwrite_all),
        (code, lambda: None),  # a worker that has run user code leaves, and then removes its files
    ]
    for number, (flags, damage) in enumerate(steps):
        where = ("--coordinator", api.url, "--token", TOKEN, "--json", "--quiet")
        urls = () if flags[0] == "--scenario" else (f"{world.target.url}/{{i}}",)
        done = run_oku("run", *urls, "-n", "30", "-c", "2", *flags, *where, cwd=world.folder)
        assert done.returncode == 0, (number, done.stderr)
        assert msgspec.json.decode(done.stdout)["outcomes"]["ok"] == 30, number
        damage()


def test_a_large_file_takes_little_memory(world: World) -> None:
    """Neither of the command that uploads it, nor of the coordinator, nor of the worker."""
    path = world.folder / "large.bin"
    with path.open("wb") as large:
        for _ in range(LARGE_MB):
            large.write(os.urandom(1_000_000))
    api = world.start_coordinator()
    worker = world.start_worker()
    wait_until(lambda: api.read_metric("oku_workers") == 1, 30, "the worker is there")
    worker_before = read_peak_mb(find_worker(worker.pid))
    command = [sys.executable, "-c", _UPLOAD, api.url, TOKEN, str(path)]
    uploaded = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert uploaded.returncode == 0, uploaded.stderr
    reference, proof, growth_mb = uploaded.stdout.split()
    assert float(growth_mb) < MOST_GROWTH_MB
    # No certificate is as large; the worker finds that out when it has all of it.
    proofs = {FileRef(reference).digest: proof}
    run = api.submit(url=f"{world.target.url}/", requests=1, cacert=reference, proofs=proofs)
    summary = api.wait_for_state(run, "failed")
    assert "cacert @large.bin cannot be used: it is larger than 1 MiB" in summary["reason"]
    assert read_peak_mb(find_worker(worker.pid)) - worker_before < MOST_GROWTH_MB
    [coordinator] = [each for each in _list_processes("coordinator") if str(world.data) in each[1]]
    assert read_peak_mb(coordinator[0]) < 2 * MOST_GROWTH_MB


def _list_processes(command: str) -> list[tuple[int, str]]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if OKU[0] in words and command in words:
            found.append((int(folder.name), " ".join(words)))
    return found
