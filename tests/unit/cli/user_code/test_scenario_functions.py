import pytest

from oku_cli.user_code.scenario_functions import ScenarioFunctions, read_functions
from oku_cli.user_code.syntax import parse_python
from oku_core.errors import UserError
from oku_core.spec.spec import Hook


def read(text: str) -> ScenarioFunctions | None:
    """The functions of a file."""
    return read_functions(parse_python(text.encode(), "a.py"), "a.py")


@pytest.mark.parametrize(
    "text", ["", "x = 1", "async def other(): pass", "class S:\n    async def scenario(self): pass"]
)
def test_a_file_without_a_scenario_has_no_functions(text: str) -> None:
    """It may be a locustfile."""
    assert read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "async def scenario(): pass",
        "async def scenario(index, http, row, setup_data): pass",
        "async def scenario(*, http: Http, index: int = 3, other=1): pass",
        "async def scenario(index, **rest): pass",
        "if True:\n    @decorated\n    async def scenario(index): pass",
        "async def scenario(index):\n    def own():\n        yield 1",
    ],
)
def test_a_scenario_may_ask_for_what_there_is(text: str) -> None:
    """In any order; what has a default of its own is left to it."""
    assert read(text) is not None


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


@pytest.mark.parametrize(
    ("rest", "hooks"),
    [
        ("", ()),
        ("def setup(): return 1", (Hook.SETUP,)),
        ("async def teardown(setup_data, http): pass", (Hook.TEARDOWN,)),
        ("async def teardown(): pass\ndef setup(http): pass", (Hook.SETUP, Hook.TEARDOWN)),
        ("class A:\n    def setup(self): pass", ()),
    ],
)
def test_the_hooks_are_found(rest: str, hooks: tuple[Hook, ...]) -> None:
    """Both kinds of function will do."""
    found = read(f"async def scenario(): pass\n{rest}")
    assert found is not None
    assert found.hooks == hooks


def test_the_line_in_which_a_row_is_asked_for_is_known() -> None:
    """A run without data has none."""
    assert read("async def scenario(index): pass") == ScenarioFunctions((), None)
    assert read("\nasync def scenario(\n    index,\n    row,\n): pass") == ScenarioFunctions((), 4)
