"""The extension uses memory as it may, and measures each answer as Python does."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.kit.requirement import miss

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "workers/src/oku_workers/speedups"
EXAMPLES = 20_000
FEW = 100
UNIT = "tests/unit/workers/"
TESTS = [UNIT + "speedups", UNIT + "engines/httptools", UNIT + "engines/test_engine_contract.py"]
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all"


def find_sanitizer() -> str:
    """The library of gcc that checks memory; empty if there is none."""
    if shutil.which("gcc") is None:
        return ""
    path = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    return path if Path(path).is_absolute() else ""


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    """The extension, compiled so that it checks its memory, without a warning."""
    include = sysconfig.get_path("include")
    if sys.platform != "linux" or not find_sanitizer() or not Path(include, "Python.h").exists():
        miss("the extension cannot be compiled with checks of its memory: that takes Linux, gcc and Python.h")
    path = tmp_path / "_speedups.abi3.so"
    flags = f"-Wall -Wextra -Werror -O1 -g -fPIC -shared {SANITIZERS} -I{include}"
    subprocess.run(["gcc", *shlex.split(flags), *map(str, SOURCES.glob("*.c")), "-o", str(path)], check=True)
    return path


def run(timeout_s: float, module: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a module of the tests in a process that ends at the first wrong use of memory."""
    environment = {
        **os.environ,
        "OKU_NO_EXTENSIONS": "",
        "LD_PRELOAD": find_sanitizer(),
        "PYTHONMALLOC": "malloc",  # each object is a block of its own
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter frees little of what it has when it ends
    }
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def test_changed_answers_are_measured_within_their_bytes(extension: Path, seed: int, scale: int) -> None:
    """Whatever was changed in the answers of the table of RFC 9112."""
    count = str(EXAMPLES * scale)
    done = run(60 * scale, "tests.fuzz.measure_answers", extension, str(seed), count)
    assert done.returncode == 0, f"{done.stderr[-3000:]}\nseed {seed}"
    patterns, recognised = map(int, done.stdout.split())
    assert patterns > 10
    assert recognised > FEW


def test_what_tests_do_with_it_uses_memory_rightly(extension: Path) -> None:
    """All that there are of what is compiled, and of the engine that it is for."""
    flags = ["-q", "-p", "no:cacheprovider", "--numprocesses", "0"]
    done = run(150, "tests.fuzz.sanitized", extension, *flags, *TESTS)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
