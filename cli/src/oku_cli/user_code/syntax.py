"""A Python file goes in, its syntax tree comes out; of what is not Python, a message names the line."""

import ast
import warnings
from collections.abc import Iterator

from oku_core.errors import UserError

_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parse_python(content: bytes, label: str) -> ast.Module:
    """The syntax tree of a Python file.

    Args:
        content: of the file.
        label: how an error message names it.

    Raises:
        UserError: it is not Python.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # whoever runs it sees them
            return ast.parse(content)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise UserError(f"{label}{line}: is not Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or nested too deeply
        raise UserError(f"{label}: is not Python: {str(error) or 'it is nested too deeply'}") from error


def iter_module_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield what is carried out when a module is imported: also what stands in its `if` and `try`."""
    for name in _BLOCKS:
        for child in getattr(tree, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            if not isinstance(child, _SCOPES):
                yield from iter_module_statements(child)
