"""Reads the text of a threshold word by word; an error names the place and the words allowed there."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, NoReturn, TypeVar

from oku_core.errors import format_value

LONGEST_TEXT = 300
"""In characters."""
_Value = TypeVar("_Value")
_WORD = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<word><=|>=|[<>+:]|[^\s<>+:"]+))')


class ComparisonOperator(StrEnum):
    """How a value must compare with its limit."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="

    @property
    def is_upper(self) -> bool:
        """Whether the limit is the largest value that is allowed, or the first that is not."""
        return self in (ComparisonOperator.BELOW, ComparisonOperator.AT_MOST)

    @property
    def is_strict(self) -> bool:
        """Whether the limit itself is not allowed."""
        return self in (ComparisonOperator.BELOW, ComparisonOperator.ABOVE)


class _Word(NamedTuple):
    text: str
    at: int
    is_quoted: bool = False


class ThresholdReader:
    """Goes through the words of a text.

    Args:
        text: what the user wrote; `ValueError` if it cannot be cut into words.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = list(self._cut())
        self._next = 0

    @property
    def is_at_end(self) -> bool:
        """Whether there is no word left."""
        return self._next == len(self._words)

    def skip(self, word: str) -> bool:
        """Go past a word if it is the next one; whether it was."""
        is_next = not self.is_at_end and self._words[self._next][::2] == (word, False)
        self._next += is_next
        return is_next

    def read_word(self, wanted: str) -> str:
        """The next word, not in quotes; the error ends with `wanted`."""
        if self.is_at_end:
            raise ValueError(f"{format_value(self._text)}: at its end, {wanted} is missing")
        word = self._words[self._next]
        self._next += 1
        return self.refuse(wanted) if word.is_quoted else word.text

    def read_name(self, wanted: str) -> str:
        """The next word as a name, which may be in quotes."""
        is_quoted = not self.is_at_end and self._words[self._next].is_quoted
        if not is_quoted:
            return self.read_word(f"the name of {wanted}")
        self._next += 1
        return self._words[self._next - 1].text

    def read_comparison(self) -> ComparisonOperator:
        """The next word as a comparison."""
        wanted = f"one of {', '.join(ComparisonOperator)}"
        word = self.read_word(wanted)
        return self.parse(lambda: ComparisonOperator(word), wanted)

    def expect_end(self) -> None:
        """Raise `ValueError` if a word is left."""
        if not self.is_at_end:
            self._next += 1
            self.refuse("allowed after it")

    def parse(self, parse: Callable[[], _Value], wanted: str) -> _Value:
        """What a parser makes of the word before; its errors name the place."""
        try:
            return parse()
        except ValueError:
            self.refuse(wanted)

    def refuse(self, wanted: str) -> NoReturn:
        """Raise `ValueError` on the word that was read last."""
        word = self._words[self._next - 1]
        place = f"{format_value(self._text)}: character {word.at + 1}"
        raise ValueError(f"{place}: {format_value(word.text)} is not {wanted}")

    def _cut(self) -> "list[_Word]":
        text = self._text
        if not text.strip() or not text.isprintable() or len(text) > LONGEST_TEXT:
            raise ValueError(f"{format_value(text)} is not a threshold such as p99 < 300ms or ok >= 99.9%")
        words, at = [], 0
        while at < len(text.rstrip()):
            match = _WORD.match(text, at)
            if match is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                raise ValueError(f'{format_value(text)}: character {start + 1}: a " is never closed')
            kind = str(match.lastgroup)
            words.append(_Word(match[kind], match.start(kind), kind == "quoted"))
            at = match.end()
        return words
