"""`./task` in a clone in a folder of any name."""

import shutil
import subprocess
from pathlib import Path

from tests.kit.requirement import miss

ROOT = Path(__file__).parents[3]


def test_a_clone_may_lie_in_a_folder_of_any_name(tmp_path: Path) -> None:
    """go-task reads the name of its folder as a shell would; `./task` gives it one that is plain."""
    if not (ROOT / ".tools" / "bin" / "task").exists():
        miss("needs the tools that ./task makes")
    clone = tmp_path / "job@2 %41#c?&;'\"[x]{i}$(id)`\\ü"
    (clone / "requirements").mkdir(parents=True)
    for name in ("task", "Taskfile.yml", "requirements/tools.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, clone / name)
    (clone / ".tools").symlink_to(ROOT / ".tools")

    # What is to be done is read, and the files that it depends on are looked for, but nothing is done.
    command = [str(clone / "task"), "--dry", "--verbose", "setup"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said, _ = process.communicate(timeout=60)

    assert process.returncode == 0, said
    assert "uv pip install" in said
    assert list(Path("/tmp").glob(f"oku-task-{process.pid}-*")) == []
