"""Without what is compiled all is as with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.requirement import NOTES_VARIABLE

ROOT = Path(__file__).parents[3]
WORKERS = ROOT / "tests" / "unit" / "workers"
FLAGS = ["-q", "-p", "no:cacheprovider", "--numprocesses", "0", "--assert", "plain"]
UNTOUCHED = ("test_feed.py", "test_paced_feed.py", "test_scheduled_feed.py", "test_scheduled_laws.py")
"""They test which request is sent when, which nothing compiled decides or counts."""

RUN = """
import sys
import pytest
from oku_workers.speedups.extension import IS_COMPILED
sys.exit(IS_COMPILED or pytest.main(sys.argv[1:]))
"""


@pytest.mark.heavy
@pytest.mark.timeout(180)
def test_the_tests_of_engines_hold_in_python_alone() -> None:
    """In a process that was told so; those of what is compiled say that there is nothing to test."""
    executions = [path for path in (WORKERS / "executions").glob("test_*.py") if path.name not in UNTOUCHED]
    command = [sys.executable, "-c", RUN, *FLAGS, *map(str, [WORKERS / "engines", *sorted(executions)])]
    environment = {**os.environ, "OKU_NO_EXTENSIONS": "yes", "CI": "", NOTES_VARIABLE: ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
