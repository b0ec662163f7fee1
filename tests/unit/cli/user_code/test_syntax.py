import ast
import warnings

import pytest

from oku_cli.user_code.syntax import iter_module_statements, parse_python
from oku_core.errors import UserError


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a = 1\nb = (\n", "a.py:2: is not Python: '(' was never closed"),
        (b"def f(:\n    pass", "a.py:1: is not Python: invalid syntax"),
        (b"a = '\xff'\n", "a.py:1: is not Python: (unicode error)"),
        (b"a = 1\0", "a.py: is not Python: source code string cannot contain null bytes"),
        (b"-" * 100_000 + b"1", "a.py: is not Python: "),
    ],
)
def test_what_is_not_python_is_told_in_one_line(content: bytes, fault: str) -> None:
    """It names the file, and the line if there is one."""
    with pytest.raises(UserError) as caught:
        parse_python(content, "a.py")
    assert str(caught.value).startswith(fault)
    assert str(caught.value).isprintable()


def test_a_warning_of_the_compiler_is_not_printed() -> None:
    """It comes when the code runs, once for each worker at most."""
    with warnings.catch_warnings(action="error"):
        assert parse_python(b'a = "\\d"\n', "a.py").body


def test_what_is_carried_out_on_import_is_found_in_blocks() -> None:
    """What stands in functions and classes is not."""
    tree = parse_python(
        b"if True:\n  def a(): pass\nelse:\n  def b(): pass\n"
        b"try:\n  def c(): pass\nexcept E:\n  def d(): pass\nfinally:\n  def e(): pass\n"
        b"class F:\n  def g(): pass\ndef h():\n  def i(): pass\n",
        "a.py",
    )
    names = [node.name for node in iter_module_statements(tree) if isinstance(node, ast.FunctionDef)]
    assert sorted(names) == ["a", "b", "c", "d", "e", "h"]
