"""The httptools engine alone, one lease, and what a request of it costs.

`python -m oku_benchmarks.contestants.request_loop SPEC REQUESTS DATA` with a spec as a mapping in JSON and
the path of a CSV file, or nothing for one. It prints the microseconds of processor time of one request.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from oku_core.accounting.outcome import OK
from oku_core.data.scan import Scan, read_table, scan
from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.data_file import describe_scan
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.engine_registry import build_engine
from oku_workers.engines.http.request_parts import open_data_rows
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed


def measure(mapping: dict[str, object], requests: int, data: Path | None) -> float:
    """Send all requests; the microseconds of processor time of one of them."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index")
        if data is not None:
            found: Scan = scan(data, data.name, index)
            mapping["data"] = describe_scan(data.name, read_table(data, data.name), found, repeat=False)
        spec = parse_spec(Source("benchmark", mapping))
        files = {} if spec.data is None or data is None else {spec.data.digest: data, spec.data.index: index}
        return uvloop.run(_send_all(spec, requests, files))


async def _send_all(spec: Spec, requests: int, files: dict[str, Path]) -> float:
    feed, rows = Feed(), open_data_rows(spec, files.__getitem__)
    engine = build_engine(spec, feed, Supervisor(), EngineContext(rows=rows))
    finished = asyncio.get_running_loop().create_future()
    lease = Lease(id="lease", run="run", ranges=[(0, requests)], limit=requests)
    execution = Execution(lease, spec, finished)
    began_s = time.process_time()
    feed.add(execution)
    engine.start()
    await finished
    cpu_s = time.process_time() - began_s
    await engine.close()
    if rows is not None:
        rows.close()
    if execution.outcomes[OK] != requests:
        raise SystemExit(f"{execution.outcomes[OK]} of {requests} requests were ok")
    return cpu_s / requests * 1e6


if __name__ == "__main__":
    text, count, path = sys.argv[1:]
    sys.stdout.write(f"{measure(json.loads(text), int(count), Path(path) if path else None):.3f}\n")
