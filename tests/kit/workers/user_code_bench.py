"""The engine of user code with a real host: runs one lease of a scenario that a test writes, to its end."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oku_core.accounting.outcome import OUTCOMES
from oku_core.data.scan import read_table, scan
from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.data_file import DataFile
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.user_code.engine import UserCodeEngine
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

PATIENCE_S = 40.0


@dataclass(frozen=True)
class UserCodeAccount:
    """What came of a lease of iterations.

    Attributes:
        execution: counted it.
    """

    execution: Execution

    @property
    def outcomes(self) -> dict[str, int]:
        """How many iterations there are of each outcome that any has."""
        return _name(self.execution.outcomes)

    @property
    def reasons(self) -> dict[str, int]:
        """How many iterations failed for each reason."""
        counts = [each for tally in self.execution.tallies for each in tally.failures.build_reasons()]
        return {count.reason: count.requests for count in counts}

    @property
    def inner(self) -> dict[str, dict[str, int]]:
        """How many inner requests there are of each outcome, by their names."""
        return {name: _name(tally.outcomes) for (_, name), tally in self.execution.inner.items()}

    @property
    def inner_reasons(self) -> dict[str, dict[str, int]]:
        """How many inner requests failed for each reason, by their names."""
        return {
            name: {count.reason: count.requests for count in tally.failures.build_reasons()}
            for (_, name), tally in self.execution.inner.items()
        }

    @property
    def statuses(self) -> dict[str, dict[int, int]]:
        """How many inner requests there are of each status, by their names."""
        return {name: dict(tally.statuses) for (_, name), tally in self.execution.inner.items()}


class UserCodeBench:
    """Runs leases of scenarios; belongs to the running event loop.

    Args:
        folder: for the files of the runs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}
        self.engine: UserCodeEngine | None = None
        self.feed = Feed()
        self._leases = 0

    def add_file(self, path: str, content: bytes) -> CodeFile:
        """A file of the run."""
        digest = hashlib.sha256(content).hexdigest()
        kept = self._folder / digest
        kept.write_bytes(content)
        self._paths[digest] = kept
        return CodeFile.build(path, FileRef.build(digest, len(content), Path(path).name))

    def find_file(self, digest: str) -> Path:
        """Where a file of the run is."""
        return self._paths[digest]

    def add_data(self, name: str, content: str) -> DataFile:
        """The rows of the run."""
        path, index = self._folder / name, self._folder / f"{name}.rows"
        path.write_text(content)
        table = read_table(path, name)
        found = scan(path, name, index)
        self._paths |= {found.digest: path, found.index_digest: index}
        return DataFile(
            name=name, format=table.format, digest=found.digest, size=found.size, rows=found.rows,
            columns=table.columns, index=found.index_digest, repeat=True,
        )  # fmt: skip

    def build_spec(
        self, source: str | bytes, files: Mapping[str, bytes] | None = None, **fields: Any
    ) -> Spec:
        """A spec of a scenario.

        Args:
            source: the text of its file.
            files: those beside it, by their paths.
            fields: what else the spec says.
        """
        if isinstance(base_url := fields.get("base_url"), str):
            fields["base_url"] = Url(base_url)
        content = source.encode() if isinstance(source, str) else source
        given: dict[str, Any] = {"engine": Engine.PYTHON, "concurrency": 4, **fields}
        return Spec(
            scenario=self.add_file("scenario.py", content),
            include=tuple(self.add_file(path, data) for path, data in (files or {}).items()),
            **given,
        )

    async def open(self, spec: Spec, silent_s: float = 30.0, **context: Any) -> UserCodeEngine:
        """Begin with a spec; `EngineError` if it cannot be run."""
        context = {"find_file": self.find_file, **context}
        engine = UserCodeEngine(spec, self.feed, Supervisor(), EngineContext(**context), silent_s)
        await engine.open()
        self.engine = engine
        engine.set_window(spec.concurrency)
        engine.start()
        return engine

    def add(self, spec: Spec, iterations: int, start: int = 0, limit: int | None = None) -> Execution:
        """Give the engine a lease, which may be taken as a whole unless told otherwise."""
        self._leases += 1
        lease = Lease(
            id=f"lease{self._leases}",
            run="run",
            ranges=[(start, start + iterations)],
            limit=iterations if limit is None else limit,
        )
        execution = Execution(lease, spec, asyncio.get_running_loop().create_future())
        self.feed.add(execution)
        return execution

    async def finish(self, execution: Execution) -> UserCodeAccount:
        """Wait for the end of a lease."""
        async with asyncio.timeout(PATIENCE_S):
            await execution.finished
        return UserCodeAccount(execution)

    async def run(
        self, source: str | bytes, iterations: int, files: Mapping[str, bytes] | None = None, **fields: Any
    ) -> UserCodeAccount:
        """Run a lease of a scenario to its end, and end the host."""
        return await self.run_spec(self.build_spec(source, files, **fields), iterations)

    async def run_spec(self, spec: Spec, iterations: int) -> UserCodeAccount:
        """The same of a spec."""
        await self.open(spec)
        try:
            return await self.finish(self.add(spec, iterations))
        finally:
            await self.close()

    async def close(self) -> None:
        """End the host."""
        engine, self.engine = self.engine, None
        if engine is not None:
            await engine.close()


def _name(outcomes: list[int]) -> dict[str, int]:
    return {str(OUTCOMES[place]): count for place, count in enumerate(outcomes) if count}
