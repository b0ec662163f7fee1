"""The prose of the tree, and six habits of English that make it read like a translation.

Each habit is a pattern, counted per 10,000 words: in the docstrings and comments of the product, and in the
pages `docs/*.md` without their code. A pattern also matches harmless uses ("the header that says so"), so the
goal is not zero: kopf, trio and procrastinate, counted alike, have between 0 and 6.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from docs.tools.house.tree import Module, Tree

_VERBS = (
    "is|are|was|were|be|been|has|have|had|does|did|do|can|cannot|could|may|might|must|will|would"
    "|became|become|came|come|kept|made|ran|stood|took|went|said|held|began|left|sent|told"
)
_NOUNS = "its|this|others|placeholders|requests|users|workers"
_PAGE = re.compile(r"docs/[^/]+\.md")
_CODE = re.compile(r"^(```+).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Habit:
    """A turn of phrase that the field does not use.

    Attributes:
        key: identifies it in the file of ceilings; `docs_` before it stands for the pages.
        title: a few words for the table.
        goal: the most matches per 10,000 words.
        pattern: matches it once.
    """

    key: str
    title: str
    goal: float
    pattern: re.Pattern[str]


def _build(key: str, title: str, goal: float, pattern: str) -> Habit:
    return Habit(key, title, goal, re.compile(rf"\b{pattern}\b", re.IGNORECASE))


HABITS = (
    # `what` as the subject of its clause: before `of`, an auxiliary, or a verb in -s or -ed.
    _build("noun_clauses", "noun clauses", 10, rf"what\s+(?!(?:{_NOUNS})\b)(?:of|{_VERBS}|\w+(?:s|ed))"),
    # All forms of the three verbs, even where a person is the subject.
    _build("saying", "say, tell, hear", 7, r"(?:say(?:s|ing)?|said|tell(?:s|ing)?|told|hear(?:s|d|ing)?)"),
    _build("whoever", "whoever, whatever, nobody, somebody", 3, r"(?:whoever|whatever|nobody|somebody)"),
    _build("so_many", "so many, so long, so often", 2, r"so\s+(?:many|long|often)"),
    _build("those_of", "those of, that of", 3, r"(?:those|that)\s+of"),
    _build("becomes_of", "becomes of, comes of", 1, r"(?:becom(?:es?|ing)|became|com(?:es?|ing)|came)\s+of"),
)


def count_in_code(habit: Habit, tree: Tree) -> float:
    """Count a habit in the prose of the product, per 10,000 words."""
    return _count(habit, (text for module in tree.product for _, text in list_prose(module)))


def count_in_pages(habit: Habit, tree: Tree) -> float:
    """Count a habit in the pages of the documentation, per 10,000 words."""
    return _count(habit, list_pages(tree).values())


def _count(habit: Habit, texts: Iterable[str]) -> float:
    matches = words = 0
    for text in texts:
        matches += len(habit.pattern.findall(text))
        words += len(text.split())
    return matches / words * 10_000 if words else 0.0


@cache
def list_pages(tree: Tree) -> dict[str, str]:
    """List the pages by path, with blanks in place of their code: `docs/*.md`, not its folders."""
    return {
        path: _CODE.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
        for path, text in tree.files.items()
        if _PAGE.fullmatch(path)
    }


@cache
def list_prose(module: Module) -> list[tuple[int, str]]:
    """List docstrings (all strings that are statements) and comments, each with its first line."""
    docstrings = [
        (node.lineno, node.value.value)
        for node in module.nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    comments = [
        (token.start[0], token.string.lstrip("#! "))
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
        if token.type == tokenize.COMMENT
    ]
    return docstrings + comments


def list_matches(tree: Tree) -> Iterator[str]:
    """List every match with its place, the files with the most first: "PATH:LINE: HABIT: the line"."""
    texts = {str(module.path): list_prose(module) for module in tree.product}
    texts |= {path: [(1, text)] for path, text in list_pages(tree).items()}
    found = {path: sorted(_list_in_file(parts)) for path, parts in texts.items()}
    for path in sorted(found, key=lambda path: (-len(found[path]), path)):
        yield from (f"{path}:{line}: {title}: {text}" for line, title, text in found[path])


def _list_in_file(parts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    for first, text in parts:
        lines = text.split("\n")
        for habit in HABITS:
            for match in habit.pattern.finditer(text):
                index = text.count("\n", 0, match.start())
                yield first + index, match[0].replace("\n", " "), lines[index].strip()
