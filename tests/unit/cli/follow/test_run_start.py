from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.runs.begun_run import build_begun

from oku_cli.backends.client import BegunRun, FileStatus, Submitted, UploadNeededError
from oku_cli.follow.run_start import RunStart, refuse_stack_flags, send_start
from oku_cli.follow.upload import read_local_file
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import FileClaim


def test_a_run_is_titled_with_its_target_its_load_and_its_engine() -> None:
    """Its name stands before it, or its id; what a coordinator alone knows is left out."""
    begun = build_begun(run="6f2c1a")
    spec = parse_spec(Source(None, {"rate": "5/s", "duration": "10s", "name": "soak"}))
    assert RunStart.submit(spec).build_title(begun) == (
        "soak · delay servers · 5/s for 10 s, 50 requests · httptools"
    )
    nameless = parse_spec(Source(None, {"url": "http://h:1/{i}", "requests": 5, "concurrency": 2}))
    assert RunStart.resume("6f2c1a", nameless).build_title(begun) == (
        "6f2c1a · http://h:1/{i} · 2 in flight, 5 requests · httptools"
    )
    unknown = RunStart(send=RunStart.submit(spec).send, resumed="6f2c1a")
    begun = msgspec.structs.replace(begun, engine=Engine.AIOHTTP, engine_reason="needs a proxy")
    assert unknown.build_title(begun) == "6f2c1a · aiohttp: needs a proxy"


def test_flags_that_shape_a_local_stack_are_refused_at_a_remote_coordinator() -> None:
    """They are not ignored silently."""
    with pytest.raises(UserError, match="--servers: shapes a local stack; it cannot be combined with --co"):
        refuse_stack_flags(servers=2)
    with pytest.raises(UserError, match="--workers: shapes a local stack"):
        refuse_stack_flags(workers=2, servers=None)
    refuse_stack_flags(workers=None, servers=None)


class Coordinator:
    """Takes files and specs, and says in which order; it asks for files of a spec whose key is new."""

    def __init__(self, *, knows_key: bool) -> None:
        self.knows_key = knows_key
        self.calls: list[str] = []

    async def fetch_file(self, claim: FileClaim) -> FileStatus:
        """Have all of a file as soon as somebody uploads it."""
        self.calls.append("upload")
        self.knows_key = True
        return FileStatus(digest=claim.digest, received=1, is_complete=True)

    async def submit(self, *_: object) -> BegunRun:
        """Take a spec."""
        self.calls.append("submit")
        return build_begun()

    async def submit_once(self, *_: object) -> Submitted:
        """Take a spec with a key."""
        self.calls.append("submit once")
        if not self.knows_key:
            raise UploadNeededError("body.txt: was not uploaded")
        return Submitted(build_begun(RunState.RUNNING), is_new=True)


async def test_files_are_uploaded_only_for_a_new_run(tmp_path: Path) -> None:
    """With a key, the coordinator is asked first; without one, there is nothing to ask."""
    (tmp_path / "body.txt").write_text("x")
    file = read_local_file(str(tmp_path / "body.txt"), "body.txt")
    cases = (
        ("k1", False, ["submit once", "upload", "submit once"]),
        ("k1", True, ["submit once"]),
        (None, False, ["upload", "submit"]),
    )
    for key, knows_key, calls in cases:
        client: Any = Coordinator(knows_key=knows_key)
        start = RunStart.submit(Spec(requests=5, body=str(file.reference)), [file], key)
        begun = await send_start(client, start, Interrupts(), InterruptHints(), quiet=True)
        assert begun.run == "r1"
        assert client.calls == calls
