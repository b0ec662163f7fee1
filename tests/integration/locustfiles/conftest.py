from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kit.servers.hostile_server import HostileServer
from tests.kit.servers.site import answer_by_path
from tests.kit.workers.locust_bench import LocustBench

Build = Callable[..., LocustBench]


@pytest.fixture
async def site() -> AsyncIterator[HostileServer]:
    """What locustfiles are to load."""
    server = HostileServer(answer_by_path)
    await server.start()
    yield server
    await server.end()


@pytest.fixture
def build(tmp_path: Path, site: HostileServer) -> Build:
    """Makes an engine for a locustfile whose host is the site."""

    def build_bench(source: str, **changes: Any) -> LocustBench:
        return LocustBench(tmp_path, source, **({"url": site.url} | changes))

    return build_bench
