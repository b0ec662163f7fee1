"""The host calls a hook with what it asks for, and says in one line why one has failed."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from oku.scenario_host.hook_call import call_hook
from oku_core.messaging.hook import MOST_RESULT_BYTES
from oku_core.spec.spec import Engine, Hook, Spec, encode_spec
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.user_code.messages import Call, Returned

Make = Callable[..., Returned]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a scenario and calls a hook of it."""

    def make(source: str, hook: Hook = Hook.SETUP, setup_data: str = "null") -> Returned:
        (tmp_path / "a.py").write_text(source)
        scenario = CodeFile.build("a.py", FileRef.build("0" * 64, len(source), "a.py"))
        spec = Spec(engine=Engine.PYTHON, scenario=scenario, hooks=(hook,))
        call = Call(hook=hook, spec=encode_spec(spec), folder=os.fsencode(tmp_path), setup_data=setup_data)
        with asyncio.Runner() as runner:
            return call_hook(call, runner)

    return make


@pytest.mark.parametrize("source", ["def setup(): return [1]", "async def setup(**_): return (1,)"])
def test_a_hook_may_be_a_function_or_a_coroutine(make: Make, source: str) -> None:
    """What it returns is JSON."""
    assert make(source) == Returned("[1]")


def test_a_teardown_gets_what_the_setup_returned(make: Make) -> None:
    """By name; what it returns itself is for nobody."""
    source = "def teardown(setup_data, other=1):\n    assert setup_data == {'a': 1}\n    return object()\n"
    assert make(source, Hook.TEARDOWN, '{"a":1}') == Returned()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("", "a.py has no function setup"),
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name' (a.py:1 in <module>)"),
        ("def setup(setup_data): pass", "a.py: setup asks for the argument setup_data, but it may have http"),
        ("def setup(): return object()", "it returned what JSON cannot hold: Object of type object"),
        ("def setup(): return float('nan')", "it returned what JSON cannot hold: "),
        (
            "def setup():\n    value = 1\n    for _ in range(101): value = [value]\n    return value",
            "it returned what JSON cannot hold: is nested too deep",
        ),
        ("def setup(): return 10 ** 1000", "it returned what JSON cannot hold: a number has 1001 digits"),
        ("def setup(): return {1: 1, '1': 2}", "it returned what JSON cannot hold: 1: is given twice"),
        ("def setup(): return 'caf\\udce9'", "it returned what JSON cannot hold: "),
        ("def setup():\n    raise SystemExit(3)", "SystemExit: 3 (a.py:2 in setup)"),
        ("async def setup():\n    raise ValueError('a\\nb')", "ValueError: a b (a.py:2 in setup)"),
        (
            f"def setup(): return 'x' * {MOST_RESULT_BYTES}",
            "it returned 1,048,578 bytes of JSON, and 1,048,576 is the most",
        ),
    ],
)
def test_a_hook_that_fails_says_why_in_one_line(make: Make, source: str, error: str) -> None:
    """With the place in the file."""
    returned = make(source)
    assert error in returned.error
    assert returned.error.isprintable()


def test_the_traceback_begins_in_the_file_of_the_user(make: Make) -> None:
    """Nothing of Oku stands in it."""
    returned = make("def setup():\n    inner()\n\n\ndef inner():\n    raise OSError('gone')\n")
    assert returned.traceback.splitlines()[1] == '  File "a.py", line 2, in setup'
    assert returned.traceback.endswith("OSError: gone\n")
