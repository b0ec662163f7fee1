"""`oku run` wherever it is called: in a folder of any name, and on a terminal that knows no UTF-8."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.kit.runs.local_run import OKU

ODD = "job@2 %41#c?&;'\"[x]{i}$(id)`\\ü💥"
"""What a URL, a shell, a glob, YAML or a template would read in another way."""
TEMPORARY = "tmp \udcff"
"""As Python reads a name that is not UTF-8: that of the folder in which user code runs."""
SCENARIO = """
async def scenario(row):
    print("naïve 💥 \\udcff", row)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with such a name, short enough for the socket of the workers to lie in it."""
    with TemporaryDirectory(prefix=ODD[:24], dir="/tmp") as parent:
        (Path(parent) / TEMPORARY).mkdir()
        yield Path(parent)


def call(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    """Call `oku` in a folder, with more environment variables, to its end."""
    environment = os.environ | {"HOME": str(folder), "TMPDIR": str(folder / TEMPORARY)} | variables
    return subprocess.run(
        [*OKU, *arguments], cwd=folder, env=environment, capture_output=True, timeout=60, check=False
    )


def test_a_run_does_not_mind_what_its_folder_and_files_are_called(folder: Path) -> None:
    """The socket of the workers lies in it, files of the run are fetched, and what is written is there."""
    (folder / f"{ODD}.py").write_text(SCENARIO, encoding="utf-8")
    (folder / f"{ODD}.csv").write_text("a\nü\n2\n3\n", encoding="utf-8")
    written = {flag: f"-{ODD}.{flag}" for flag in ("--summary-json", "--junit", "--summary-markdown")}
    flags = [f"{flag}={name}" for flag, name in written.items()]

    ran = call(
        folder, "run", f"{ODD}.py", "--data", f"{ODD}.csv", "-n", "3", "-w", "1", "--name", ODD, *flags
    )
    reported = call(folder, "report", ODD, "-o", f"-{ODD}.html")

    assert (ran.returncode, reported.returncode) == (0, 0), (
        ran.stdout + ran.stderr + reported.stderr
    ).decode()
    assert json.loads((folder / written["--summary-json"]).read_text())["outcomes"]["ok"] == 3
    assert {*written.values(), f"-{ODD}.html"} <= {path.name for path in folder.iterdir()}
    assert list((folder / TEMPORARY).glob("oku-*")) == []


def test_a_run_ends_as_it_does_elsewhere_where_nothing_is_utf_8(folder: Path) -> None:
    """Python takes ASCII for everything: the command line, names of files, and what is printed."""
    (folder / "ü.py").write_text(SCENARIO.replace("row", "index"), encoding="utf-8")
    locale = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii:strict",
    }

    ran = call(folder, "run", "ü.py", "-n", "3", "-w", "1", "--name", "naïve 💥", **locale)
    listed = call(folder, "runs", "--json", **locale)

    assert ran.returncode == 0, ran.stderr
    assert b"na?ve ?" in ran.stdout
    assert (ran.stdout + ran.stderr).isascii()
    [run] = json.loads(listed.stdout.decode("ascii"))
    assert (run["name"], run["state"], run["ok"]) == ("naïve 💥", "completed", 3)
    log = (folder / ".oku" / "logs" / "worker-1.log").read_text(encoding="utf-8")
    assert "user code: naïve 💥" in log
