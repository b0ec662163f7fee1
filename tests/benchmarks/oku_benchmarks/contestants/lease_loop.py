"""A worker without its broker: its lease runner and its engine on its event loop, one lease, and the end.

`python -m oku_benchmarks.contestants.lease_loop URL REQUESTS CONCURRENCY ENGINE`: for what counts
instructions, under which a whole stack would be too slow.
"""

import asyncio
import sys

from tests.kit.workers.engine_worker import EngineWorker

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url


def run(url: str, requests: int, concurrency: int, engine: Engine) -> int:
    """Send all requests; how many were ok."""
    worker = EngineWorker()
    spec = Spec(urls=(Url(url),), requests=requests, concurrency=concurrency, engine=engine)
    account = asyncio.run(worker.run(spec, requests))
    worker.close()
    return account.outcomes[0]


if __name__ == "__main__":
    url, requests, concurrency, engine = sys.argv[1:]
    sys.exit(run(url, int(requests), int(concurrency), Engine(engine)) != int(requests))
