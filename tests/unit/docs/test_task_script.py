"""`./task` in a clone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.requirement import miss

ROOT = Path(__file__).parents[3]
_IMPORTS = "import oku_cli.commands.run, oku_coordinator.process, oku_workers.process, oku.host"


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
    for room in ROOT.glob("*/src"):
        shutil.copytree(room, tmp_path / room.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
    assert len(_start(tmp_path)) > 300

    pulled = tmp_path / "core/src/oku_core/errors.py"
    for line in ("", "PULLED = True\n"):
        pulled.write_text(pulled.read_text() + line)
        subprocess.run([tmp_path / "task", "setup:bytecode"], check=True)
        assert _start(tmp_path) == []


def _clone(folder: Path) -> None:
    if not (ROOT / ".tools" / "bin" / "task").exists():
        miss("needs the tools that ./task makes")
    (folder / "requirements").mkdir(parents=True)
    for name in ("task", "Taskfile.yml", "requirements/tools.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    (folder / ".tools").symlink_to(ROOT / ".tools")


def _start(folder: Path) -> list[str]:
    """The modules of a clone that its processes compile when they start."""
    rooms = {"PYTHONPATH": os.pathsep.join(map(str, folder.glob("*/src"))), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-v", "-c", _IMPORTS]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | rooms).stderr
    return re.findall(rf"^# code object from ({folder}/.*\.py)$", said, re.MULTILINE)
