"""The engine of user code with a locustfile of a test, in the running event loop, and a feed of the test."""

import asyncio
import hashlib
import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.kit.runs.scanned import keep_data

from oku_core.accounting.outcome import build_outcome_counts
from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.contract.user_code_host import EVERYTHING, Isolation, choose_environment
from oku_workers.engines.user_code.engine import UserCodeEngine
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

LOCUSTFILE = "locustfile.py"
_DEADLINE_S = 60.0


class LocustBench:
    """An engine that runs a locustfile.

    Args:
        folder: of the test; the files are written there.
        source: the locustfile; it need not begin at the left margin.
        url: its host.
        files: further files of user code, by their paths.
        rows: of the run, as CSV with a header.
        silent_s: how long the host may say nothing.
        **changes: what else the spec says, and `path`, that of the locustfile.
    """

    def __init__(
        self,
        folder: Path,
        source: str,
        url: str | None = None,
        *,
        files: Mapping[str, str] | None = None,
        rows: str = "",
        silent_s: float = 30.0,
        **changes: Any,
    ) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}
        fields: dict[str, Any] = {
            "base_url": None if url is None else Url(url),
            "concurrency": 5,
            "timeout_s": 10.0,
            "data": self._keep_rows(rows) if rows else None,
            "scenario": self._keep(changes.pop("path", LOCUSTFILE), source),
            "include": tuple(self._keep(name, text) for name, text in (files or {}).items()),
        }
        self.spec = Spec(engine=Engine.LOCUST, **(fields | changes))
        self.feed = Feed()
        self.supervisor = Supervisor()
        context = EngineContext(
            find_file=self.find_file,
            isolation=Isolation(choose_environment(os.environ, [EVERYTHING])),  # as in a local stack
        )
        self.engine = UserCodeEngine(self.spec, self.feed, self.supervisor, context, silent_s)

    async def __aenter__(self) -> Self:
        """Load the locustfile."""
        await self.engine.open()
        self.engine.set_window(self.spec.concurrency)
        self.engine.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the host."""
        await self.engine.close()

    def find_file(self, digest: str) -> Path:
        """The path of a file of the run."""
        return self._paths[digest]

    def keep_file(self, path: Path) -> FileRef:
        """Take a file of the run up."""
        content = path.read_bytes()
        reference = FileRef.build(hashlib.sha256(content).hexdigest(), len(content), path.name)
        self._paths[reference.digest] = path
        return reference

    def begin(self, *ranges: tuple[int, int]) -> Execution:
        """Give the engine a lease of these ranges."""
        lease = Lease(id=str(ranges), run="r1", ranges=list(ranges), limit=10**9)
        execution = Execution(lease, self.spec, asyncio.get_running_loop().create_future())
        self.feed.add(execution)
        return execution

    async def run(self, iterations: int) -> Execution:
        """Carry so many iterations out."""
        execution = self.begin((0, iterations))
        await asyncio.wait_for(execution.finished, _DEADLINE_S)
        return execution

    def _keep_rows(self, text: str) -> DataFile:
        files = self._folder / "files"
        data = keep_data(self._folder, text, files)
        self._paths |= {digest: files / digest for digest in (data.digest, data.index)}
        return data

    def _keep(self, name: str, text: str) -> CodeFile:
        path = self._folder / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return CodeFile.build(name, self.keep_file(path))


def count_outcomes(execution: Execution) -> dict[str, int]:
    """The iterations of an execution by their outcomes, without those that are none."""
    return _drop_zeros(build_outcome_counts(execution.outcomes))


def count_requests(execution: Execution) -> dict[str, dict[str, int]]:
    """The requests within iterations, by name and outcome."""
    return {
        name: _drop_zeros(build_outcome_counts(tally.outcomes))
        for (_, name), tally in sorted(execution.inner.items())
    }


def _drop_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def list_reasons(execution: Execution) -> dict[str, int]:
    """Why iterations failed, with how many did for each reason."""
    counts = [count for tally in execution.tallies for count in tally.failures.build_reasons()]
    return {count.reason: count.requests for count in counts}
