"""Options whose text a parser of `oku_core` reads: what it refuses is answered in one line with the flag."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from oku_core.errors import UserError
from oku_core.spec.values.quantity import parse_duration_between


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """The type of such an option.

    Args:
        name: how help shows its value: `DURATION`.
        parse: reads a text; `ValueError` says in a sentence what is wrong with it.
    """

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002  # click's signature
        """Read a text; other values were read before."""
        if not isinstance(value, str):
            return value
        with naming(param.opts[0] if param else self.name):
            return self.parse(value)


def build_duration(least: str, most: str) -> Parsed:
    """The type of a duration within bounds, in seconds."""
    return Parsed("duration", partial(parse_duration_between, least=least, most=most))


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Turn a `ValueError` into a `UserError` that names the flags or the variable with the wrong value."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{source}: {error}") from error
