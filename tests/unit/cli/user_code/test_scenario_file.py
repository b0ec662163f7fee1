from pathlib import Path

import pytest

from oku_cli.user_code.scenario_file import read_scenario_file
from oku_core.errors import UserError
from oku_core.spec.spec import Engine

SCENARIO = "async def scenario(index): pass\n"


def choose(folder: Path, text: str, engine: Engine | None = None) -> Engine:
    """The engine for a file."""
    (folder / "a.py").write_text(text)
    return read_scenario_file(folder / "a.py", "a.py", engine).engine


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (SCENARIO, Engine.PYTHON),
        ("from locust import HttpUser\nclass A(HttpUser): pass", Engine.LOCUST),
        ("import locust\nclass A(locust.FastHttpUser): pass", Engine.LOCUST),
        ("from locust.contrib.fasthttp import FastHttpUser", Engine.LOCUST),
        ("from own import Base\nclass A(Base): pass", Engine.LOCUST),
        (f"from locust import events\n{SCENARIO}", Engine.PYTHON),
    ],
)
def test_a_file_is_run_by_what_it_is(tmp_path: Path, text: str, engine: Engine) -> None:
    """Users of Locust may also derive from those of a module beside it."""
    (tmp_path / "own.py").write_text("from locust import HttpUser\nclass Base(HttpUser): abstract = True")
    assert choose(tmp_path, text) is engine


def test_nothing_of_it_is_run(tmp_path: Path) -> None:
    """The command has other rights than the process of user code."""
    text = f"raise SystemExit\nopen({str(tmp_path / 'touched')!r}, 'w')\n{SCENARIO}"
    assert choose(tmp_path, text) is Engine.PYTHON
    assert not (tmp_path / "touched").exists()


def test_a_file_that_is_both_is_what_the_user_says(tmp_path: Path) -> None:
    """Only what it is not cannot be said."""
    both = f"import locust\n{SCENARIO}"
    assert choose(tmp_path, both, Engine.LOCUST) is Engine.LOCUST
    assert choose(tmp_path, both, Engine.PYTHON) is Engine.PYTHON
    assert choose(tmp_path, SCENARIO, Engine.LOCUST) is Engine.PYTHON


def test_what_no_engine_can_run_is_refused(tmp_path: Path) -> None:
    """In one line each."""
    with pytest.raises(UserError, match=r"^a\.py: has neither an async def scenario nor users of Locust$"):
        choose(tmp_path, "import asyncio\nasync def main(): pass")
    for name, fault in {"none.py": "No such file or directory", ".": "is not a regular file"}.items():
        with pytest.raises(UserError, match=f"^{name}: {fault}$"):
            read_scenario_file(tmp_path / name, name)
