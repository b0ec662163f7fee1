"""`./task` in a clone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.requirement import miss

ROOT = Path(__file__).parents[3]
_COPIED = ("task", "Taskfile.yml", "requirements/tools.txt", "pyproject.toml")
_COMPILED = """
import importlib, sys
from importlib.machinery import SourceFileLoader

compiled, compile_source = [], SourceFileLoader.source_to_code

def record(self, data, path, **options):
    compiled.append(path)
    return compile_source(self, data, path, **options)

SourceFileLoader.source_to_code = record
folder, *names = sys.argv[1:]
for name in names:
    importlib.import_module(name)
print(*(path for path in compiled if path.startswith(folder)), sep="\\n")
"""
"""Imports modules; prints what had to be compiled of that which lies in a folder."""
_PARTS = (
    "oku_cli.commands.run",
    "oku_coordinator.process",
    "oku_workers.process",
    "oku_server.process",
    "oku.host",
)


def test_a_clone_may_lie_in_a_folder_of_any_name(tmp_path: Path) -> None:
    """go-task reads the name of its folder as a shell would; `./task` gives it one that is plain."""
    clone = tmp_path / "job@2 %41#c?&;'\"[x]{i}$(id)`\\ü"
    _clone(clone)

    # What is to be done is read, and the files that it depends on are looked for, but nothing is done.
    command = [str(clone / "task"), "--dry", "--verbose", "setup"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 0, said
    assert "uv pip install" in said
    assert "-m compileall" in said
    assert list(Path("/tmp").glob(f"oku-task-{process.pid}-*")) == []


@pytest.mark.heavy
def test_set_up_compiles_the_modules_of_oku(tmp_path: Path) -> None:
    """A start compiles none, even if Python may not write bytecode, and even after a `git pull`."""
    _clone(tmp_path)
    rooms = [path.relative_to(ROOT) for path in ROOT.glob("*/src")]
    for room in rooms:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    assert len(_list_compiled(tmp_path, rooms)) > 300

    _compile(tmp_path)
    assert _list_compiled(tmp_path, rooms) == []

    pulled = tmp_path / "core/src/oku_core/errors.py"
    pulled.write_text(pulled.read_text() + "\nPULLED = True\n")
    assert _list_compiled(tmp_path, rooms) == [str(pulled)]
    _compile(tmp_path)
    assert _list_compiled(tmp_path, rooms) == []


def _clone(folder: Path) -> None:
    """Copy what `./task` needs, with the tools of this checkout."""
    if not (ROOT / ".tools" / "bin" / "task").exists():
        miss("needs the tools that ./task makes")
    for name in _COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / ".tools").symlink_to(ROOT / ".tools")


def _compile(folder: Path) -> None:
    subprocess.run([folder / "task", "setup:bytecode"], check=True)


def _list_compiled(folder: Path, rooms: list[Path]) -> list[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(str(folder / room) for room in rooms),
    }
    command = [sys.executable, "-P", "-c", _COMPILED, str(folder), *_PARTS]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.split()
