"""The prose of modules: docstrings, those of attributes included, and comments."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

from docs.tools.house.tree import Module

_VERBS = (
    "is|are|was|were|be|been|has|have|had|does|did|do|can|cannot|could|may|might|must|will|would"
    "|became|become|came|come|kept|made|ran|stood|took|went|said|held|began|left|sent|told"
)
_NOUNS = "its|this|others|placeholders|requests|users|workers"
_NOUN_CLAUSE = re.compile(rf"\bwhat\s+(?!(?:{_NOUNS})\b)(?:of|{_VERBS}|\w+(?:s|ed))\b", re.IGNORECASE)
"""`what` as the subject of its clause: before `of`, an auxiliary, or a verb in -s or -ed."""


def find_noun_clauses(text: str) -> list[str]:
    """Clauses such as "what is", "what of" and "what becomes", which stand for a noun of the field."""
    return _NOUN_CLAUSE.findall(text)


def count_noun_clauses(modules: Iterable[Module]) -> float:
    """Count the noun clauses per 10,000 words; words are separated by blanks."""
    texts = [text for module in modules for text in list_prose(module)]
    words = sum(len(text.split()) for text in texts)
    return sum(len(find_noun_clauses(text)) for text in texts) / words * 10_000 if words else 0.0


def list_prose(module: Module) -> Iterator[str]:
    """List docstrings, which are all strings that are statements, and the lines of comments."""
    for node in module.nodes:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#! ")
