from pathlib import Path

import pytest

from oku.sandbox.user_module import (
    LoadError,
    describe_assertion,
    describe_exception,
    format_traceback,
    load_module,
)
from oku_core.process.redaction import hide


def write(folder: Path, text: str, name: str = "tea.py") -> str:
    """A file of user code."""
    (folder / name).write_text(text)
    return name


def catch(folder: Path, text: str) -> BaseException:
    """What the function `fail` of a file raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        load_module(folder, write(folder, text)).fail()
    return caught.value


def test_a_file_is_a_module(tmp_path: Path) -> None:
    """It knows its own name, so that classes in it can be pickled."""
    text = "import sys\nMINE = sys.modules[__name__]\n"
    module = load_module(tmp_path, write(tmp_path, text, "green_tea.py"))
    assert module.MINE is module
    assert module.__name__ == "green_tea"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (tea.py:1 in <module>)"),
        ("def a():\n    raise KeyError\n\na()", "KeyError (tea.py:2 in a)"),
        (
            "import no_such_module",
            "ModuleNotFoundError: No module named 'no_such_module' (tea.py:1 in <module>)",
        ),
        (
            "import json\njson.loads('{')",
            "JSONDecodeError: Expecting property name enclosed in double quotes",
        ),
        ("a b", "SyntaxError: invalid syntax (tea.py, line 1) (tea.py:1)"),
        ("raise SystemExit('a\\nb')", "SystemExit: a b (tea.py:1 in <module>)"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """With the last place in user code."""
    with pytest.raises(LoadError) as caught:
        load_module(tmp_path, write(tmp_path, text))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_an_exception_names_files_from_the_folder_of_user_code(tmp_path: Path) -> None:
    """Each host has a folder of its own; with it in the text, each would have a reason of its own."""
    error = catch(tmp_path, "def fail():\n    open(__file__ + '.csv')\n")
    expected = "FileNotFoundError: [Errno 2] No such file or directory: 'tea.py.csv' (tea.py:2 in fail)"
    assert describe_exception(error, tmp_path) == expected


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """It is the same error."""
    with pytest.raises(LoadError, match="FileNotFoundError"):
        load_module(tmp_path, "none.py")


def test_a_traceback_begins_with_user_code(tmp_path: Path) -> None:
    """Nobody is shown how Oku calls it, nor where its folder is."""
    error = catch(
        tmp_path, "def fail():\n    return inner()\n\ndef inner():\n    raise ValueError('no tea')\n"
    )
    assert describe_exception(error, tmp_path) == "ValueError: no tea (tea.py:5 in inner)"
    # Under some lines versions of Python put marks, each in its own way.
    lines = [line for line in format_traceback(error, tmp_path).splitlines() if line.strip(" ^~")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "tea.py", line 2, in fail',
        "    return inner()",
        '  File "tea.py", line 5, in inner',
        "    raise ValueError('no tea')",
        "ValueError: no tea",
    ]


def test_an_exception_of_elsewhere_has_no_place() -> None:
    """It is described by what it says."""
    assert describe_exception(ValueError("no"), Path("/nowhere")) == "ValueError: no"
    assert describe_exception(ValueError(), Path("/nowhere")) == "ValueError"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("assert 1 > 2, 'too\\nfew'", "too few (tea.py:2 in fail)"),
        ("assert 1 > 2", "assert 1 > 2 (tea.py:2 in fail)"),
    ],
)
def test_an_assertion_is_its_text_or_its_code(tmp_path: Path, code: str, line: str) -> None:
    """One without a text says what did not hold."""
    error = catch(tmp_path, f"def fail():\n    {code}\n")
    assert isinstance(error, AssertionError)
    assert describe_assertion(error, tmp_path) == line


def test_an_assertion_without_a_place() -> None:
    """There is nothing more to say."""
    assert describe_assertion(AssertionError(), Path("/nowhere")) == "assertion failed"


def test_an_exception_whose_text_fails_has_its_type(tmp_path: Path) -> None:
    """User code may have written that, too."""
    text = (
        "class Odd(Exception):\n    def __str__(self):\n        return 1 / 0\n\ndef fail():\n    raise Odd\n"
    )
    assert describe_exception(catch(tmp_path, text), tmp_path) == "Odd (tea.py:6 in fail)"


def test_the_text_of_an_exception_is_cut(tmp_path: Path) -> None:
    """A whole answer may stand in it."""
    error = catch(tmp_path, "def fail():\n    raise ValueError('x' * 10_000_000)\n")
    for said in (describe_exception(error, tmp_path), format_traceback(error, tmp_path)):
        assert "ValueError: xxx" in said
        assert len(said) < 2_000


@pytest.mark.parametrize("before", [980, 990, 999])
def test_no_part_of_a_secret_is_left_where_an_exception_is_cut(tmp_path: Path, before: int) -> None:
    """It is masked before, also in the traceback."""
    hide("module-hunter2-0815")
    text = f"def fail():\n    raise ValueError('x' * {before} + '-'.join(['module', 'hunter2', '0815']))"
    error = catch(tmp_path, text)
    for told in (describe_exception(error, tmp_path), format_traceback(error, tmp_path).splitlines()[-1]):
        assert "xmo" not in told
        assert "x*" in told or told.count("x") > 900
