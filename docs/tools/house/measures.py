"""The measures of the house, each with its goal."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from docs.tools.house import shapes
from docs.tools.house.prose import HABITS, Habit, count_in_code, count_in_pages
from docs.tools.house.tree import Tree
from docs.tools.unique_names import find_repeated

_SMALL_LINES = 40
_MANY_MODULES = 10
_PAGE = "docs/architecture.md"


@dataclass(frozen=True)
class Measure:
    """A number of the tree that should be small.

    Attributes:
        key: names it in the file of ceilings.
        title: names it in the table.
        goal: the most that it should be.
        count: finds it in a tree.
    """

    key: str
    title: str
    goal: float
    count: Callable[[Tree], float]


def _count_product_lines(tree: Tree) -> int:
    return sum(module.line_count for module in tree.product)


def _count_small_modules(tree: Tree) -> int:
    return sum(module.line_count <= _SMALL_LINES for module in tree.modules)


def _count_large_packages(tree: Tree) -> int:
    """Count the folders with more than ten modules, without `__init__` and packages within."""
    return sum(
        count > _MANY_MODULES for count in Counter(module.path.parent for module in tree.modules).values()
    )


def _count_test_lines(tree: Tree) -> int:
    """Count the lines of the tests, and those of the benchmarks, which are measured alone, too."""
    return sum(module.line_count for module in (*tree.tests, *tree.benchmarks))


def _count_repeated(kind: str, tree: Tree) -> int:
    return sum(name.startswith(f"{kind} ") for name in find_repeated(tree))


def _measure_code(habit: Habit) -> Measure:
    title = f"{habit.title} / 10,000 words"
    return Measure(habit.key, title, habit.goal, lambda tree: round(count_in_code(habit, tree), 1))


def _measure_pages(habit: Habit) -> Measure:
    title = "  in docs/*.md"
    return Measure(f"docs_{habit.key}", title, habit.goal, lambda tree: round(count_in_pages(habit, tree), 1))


MEASURES = (
    Measure("product_lines", "product lines, dashboards included", 67_000, _count_product_lines),
    Measure("modules", "modules (without `__init__`)", 535, lambda tree: len(tree.modules)),
    Measure("small_modules", f"modules of at most {_SMALL_LINES} lines", 25, _count_small_modules),
    Measure("large_packages", "packages with more than ten modules", 8, _count_large_packages),
    Measure(
        "shapes", "classes that hold outcomes and latencies", 5, lambda tree: len(shapes.list_shapes(tree))
    ),
    Measure(
        "response_time",
        "modules that mention `response_time`",
        12,
        lambda tree: len(shapes.list_response_time(tree)),
    ),
    Measure(
        "new_time", "files that a new measured time touches", 12, lambda tree: len(shapes.list_new_time(tree))
    ),
    Measure(
        "tables", "modules that build tables of a summary", 14, lambda tree: len(shapes.list_tables(tree))
    ),
    Measure(
        "repeated_classes",
        "class names that occur twice",
        10,
        lambda tree: _count_repeated("class", tree),
    ),
    Measure(
        "repeated_functions",
        "function names that occur twice",
        0,
        lambda tree: _count_repeated("function", tree),
    ),
    Measure(
        "repeated_modules",
        "module names that occur twice",
        15,
        lambda tree: _count_repeated("module", tree),
    ),
    Measure("callables", "bare `Callable` parameters", 120, shapes.count_callables),
    Measure("test_lines", "lines of tests, benchmarks included", 95_000, _count_test_lines),
    Measure(
        "benchmark_lines",
        "lines of benchmarks",
        4_000,
        lambda tree: sum(module.line_count for module in tree.benchmarks),
    ),
    Measure("benchmark_modules", "modules of benchmarks", 15, lambda tree: len(tree.benchmarks)),
    Measure(
        "architecture_words",
        f"words in {_PAGE}",
        3_000,
        lambda tree: len(tree.files.get(_PAGE, "").split()),
    ),
    *(measure for habit in HABITS for measure in (_measure_code(habit), _measure_pages(habit))),
)
