from pathlib import Path

import pytest

from oku_cli.user_code.code_files import parse_python
from oku_cli.user_code.scenario_file import ScenarioFunctions, read_functions, read_scenario_file
from oku_core.errors import UserError
from oku_core.spec.spec import Engine, Hook


def read(text: str) -> ScenarioFunctions | None:
    """The functions of a file."""
    return read_functions(parse_python(text.encode(), "a.py"), "a.py")


def test_a_scenario_may_ask_for_what_there_is() -> None:
    """In any order; what has a default of its own is left to it."""
    for text in [
        "async def scenario(): pass",
        "async def scenario(index, http, row, setup_data): pass",
        "async def scenario(*, http: Http, index: int = 3, other=1): pass",
        "async def scenario(index, **rest): pass",
        "if True:\n    @decorated\n    async def scenario(index): pass",
        "async def scenario(index):\n    def own():\n        yield 1",
    ]:
        assert read(text) is not None
    for text in ["", "x = 1", "async def other(): pass", "class S:\n    async def scenario(self): pass"]:
        # A file without a scenario has no functions. It may be a locustfile.
        assert read(text) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("def scenario(index): pass", "a.py:1: scenario is not async; it has to be a coroutine function"),
        ("async def scenario():\n    yield 1", "a.py:1: scenario yields; it has to be a coroutine function"),
        (
            "x = 1\nasync def scenario(i, http): pass",
            "a.py:2: scenario: there is no argument i; it may have index, http, row and setup_data",
        ),
        (
            "async def scenario(index, *, session): pass",
            "a.py:1: scenario: there is no argument session; it may have index, http, row and setup_data",
        ),
        (
            "async def scenario(index, /): pass",
            "a.py:1: scenario: index is given by its name, so that it cannot be positional only",
        ),
        (
            "async def scenario(): pass\ndef setup(index): pass",
            "a.py:2: setup: there is no argument index; it may have http",
        ),
        (
            "async def scenario(): pass\nasync def teardown(row): pass",
            "a.py:2: teardown: there is no argument row; it may have http and setup_data",
        ),
    ],
)
def test_what_cannot_be_called_is_told_in_one_line(text: str, fault: str) -> None:
    """It says what is allowed."""
    with pytest.raises(UserError) as caught:
        read(text)
    assert str(caught.value) == fault


def test_the_hooks_are_found() -> None:
    """Both kinds of function will do."""
    for rest, hooks in [
        ("", ()),
        ("def setup(): return 1", (Hook.SETUP,)),
        ("async def teardown(setup_data, http): pass", (Hook.TEARDOWN,)),
        ("async def teardown(): pass\ndef setup(http): pass", (Hook.SETUP, Hook.TEARDOWN)),
        ("class A:\n    def setup(self): pass", ()),
    ]:
        found = read(f"async def scenario(): pass\n{rest}")
        assert found is not None
        assert found.hooks == hooks
    # The line in which a row is asked for is known. A run without data has none.
    assert read("async def scenario(index): pass") == ScenarioFunctions((), None)
    assert read("\nasync def scenario(\n    index,\n    row,\n): pass") == ScenarioFunctions((), 4)


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
    # A file that is both is what the user says. Only what it is not cannot be said.
    both = f"import locust\n{SCENARIO}"
    assert choose(tmp_path, both, Engine.LOCUST) is Engine.LOCUST
    assert choose(tmp_path, both, Engine.PYTHON) is Engine.PYTHON
    assert choose(tmp_path, SCENARIO, Engine.LOCUST) is Engine.PYTHON
    # What no engine can run is refused. In one line each.
    with pytest.raises(UserError, match=r"^a\.py: has neither an async def scenario nor users of Locust$"):
        choose(tmp_path, "import asyncio\nasync def main(): pass")
    for name, fault in {"none.py": "No such file or directory", ".": "is not a regular file"}.items():
        with pytest.raises(UserError, match=f"^{name}: {fault}$"):
            read_scenario_file(tmp_path / name, name)
