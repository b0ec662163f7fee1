import pytest
from docs.tools.house import shapes
from docs.tools.house.__main__ import build_table
from docs.tools.house.ceilings import CEILINGS, find_faults, lower, read_ceilings
from docs.tools.house.measures import MEASURES
from docs.tools.house.prose import HABITS, list_matches
from docs.tools.house.tree import Tree

PATH = "core/src/oku_core/accounting/account.py"


def build_tree(text: str = "", **files: str) -> Tree:
    """A tree with one module of the product, and other files by path, with `__` for a slash."""
    return Tree({PATH: text} | {name.replace("__", "/"): content for name, content in files.items()})


def measure(key: str, tree: Tree) -> float:
    """The value of one measure."""
    return next(each.count(tree) for each in MEASURES if each.key == key)


def test_the_product_is_the_packages_and_the_dashboards() -> None:
    """Tests, benchmarks, documents and the build are none of it; `__init__` has lines, but is no module."""
    files = {
        PATH: "a\n\n# b\n",
        "core/src/oku_core/__init__.py": "a\n",
        "charts/dashboards/oku_dashboards/run.py": "a\n" * 41,
        "charts/oku/files/prove.py": "a\n",
        "docs/tools/check.py": "a\n",
        "hatch_build.py": "a\n",
        "tests/unit/test_account.py": "a\n" * 5,
        "tests/benchmarks/oku_benchmarks/peers.py": "a\n" * 7,
    }
    tree = Tree(files)
    assert [measure(key, tree) for key in ("product_lines", "modules", "small_modules")] == [45, 2, 1]
    assert [measure(key, tree) for key in ("test_lines", "benchmark_lines", "benchmark_modules")] == [
        12,
        7,
        1,
    ]
    # A package is large with eleven modules. Its `__init__` and the packages within it do not count.
    names = [f"core/src/oku_core/m{number}.py" for number in range(10)]
    small = dict.fromkeys([*names, "core/src/oku_core/__init__.py", "core/src/oku_core/more/m.py"], "")
    assert measure("large_packages", Tree(small)) == 0
    assert measure("large_packages", Tree(small | {"core/src/oku_core/m10.py": ""})) == 1


@pytest.mark.parametrize(
    ("body", "is_shape"),
    [
        ("    outcomes: list[int]\n    latency: HistogramSnapshot\n", True),
        ("    outcomes: list[int]\n    times: dict[Time, Histogram]\n", True),
        ("    statuses: dict[int, int]\n    measured: dict[str, Histogram]\n", True),
        ("    def __init__(self):\n        self._outcomes, self._latency = [], None\n", True),
        ("    outcomes: list[int]\n", False),
        ("    latency: HistogramSnapshot\n", False),
        ("    name: str\n    counts: Counts\n", False),
        ("    outcome: int\n    latency_us: int\n", False),
        ("    def add(self, outcomes: list[int]):\n        latency = 1\n", False),
    ],
)
def test_a_shape_holds_outcomes_and_times(body: str, *, is_shape: bool) -> None:
    """As declared fields or as attributes. Figures of one request are no shape, nor is `Counts`."""
    assert bool(shapes.list_shapes(build_tree(f"class Account:\n{body}"))) == is_shape


def test_mentions_of_the_response_time_are_counted_once_a_module() -> None:
    """In texts as well; the dashboards name the metrics."""
    tree = build_tree(
        "response_time_ms = 'response_time'",
        charts__dashboards__run="",
        **{"charts__dashboards__a.py": "response_time"},
    )
    assert shapes.list_response_time(tree) == [PATH]
    # A new time touches the files that name one of the last.
    named = {PATH: "Time.TLS", "docs/metrics.md": "`first_byte`", "tests/unit/test_a.py": "tally.timings"}
    other = {
        "docs/decisions/0048.md": "first_byte",
        "tests/benchmarks/a.py": "timings",
        "docs/http2.md": "TLS",
    }
    assert shapes.list_new_time(Tree(named | other)) == list(named)


@pytest.mark.parametrize(
    ("text", "is_table"),
    [
        ("from oku_core.summary.summary import Summary\nfrom rich.text import Text\n", True),
        ("from oku_core.summary.summary import PhaseSummary\nfrom oku_cli.tables import Table\n", True),
        ("from oku_core.summary.summary import Summary\nheads = '| --- |'\n", True),
        ("from oku_core.summary.summary import Summary\n", False),
        ("from oku_cli.report.charts.axis import Tick\nfrom oku_cli.report.markup import Html\n", False),
        ("from rich.table import Table\n", False),
    ],
)
def test_a_module_of_tables_knows_results_and_how_to_draw(text: str, *, is_table: bool) -> None:
    """One of the two alone makes none."""
    assert bool(shapes.list_tables(build_tree(text))) == is_table


def test_callables_are_counted_in_parameters_and_fields() -> None:
    """An alias is none, wherever it is used, and neither is a result."""
    text = (
        "Clock = Callable[[], float]\n"
        "def a(b: Callable[[], None], c: Callable[[], None] | None, d: Clock) -> Callable[[], None]: ...\n"
        "class F:\n    g: Sequence[Callable[[], None]]\n"
    )
    assert shapes.count_callables(build_tree(text)) == 3


def test_names_that_occur_twice_are_counted_by_kind() -> None:
    """Each counts once, however often it occurs; `tests/unit/docs/test_unique_names.py` has the rest."""
    text = "class A: ...\nclass B: ...\ndef build(): ...\n"
    tree = build_tree(text, **{"cli/src/oku_cli/b.py": text})
    found = [measure(f"repeated_{kind}", tree) for kind in ("classes", "functions", "modules")]
    assert found == [2, 1, 0]


def test_habits_are_counted_in_docstrings_and_comments() -> None:
    """Texts of the program are not prose; `what` before a noun or as an object is no noun clause."""
    text = (
        '"""What is sent."""\n\nA = "what is kept, said nobody"\n"""What\nbecame of it: three more."""\n'
        "# What the user wants, so many: those\n"
    )
    tree = build_tree(text)
    assert measure("noun_clauses", tree) == pytest.approx(2 / 16 * 10_000, abs=0.1)
    assert measure("becomes_of", tree) == measure("so_many", tree) == pytest.approx(1 / 16 * 10_000, abs=0.1)
    assert measure("saying", tree) == measure("whoever", tree) == measure("those_of", tree) == 0
    others = "what its workers do, what it says, what differs, what failed, what workers do"
    assert HABITS[0].pattern.findall(others) == ["what differs", "what failed"]
    # Habits of pages are counted without their code. Only pages that stand directly in docs are counted.
    page = "It says `said of so` what is.\n\n```sh\ntell somebody\n```\nNobody\n"
    tree = build_tree(docs__a="", **{"docs/a.md": page, "docs/decisions/1.md": "said", "README.md": "said"})
    assert measure("docs_saying", tree) == measure("docs_whoever", tree) == 2_000
    assert measure("docs_noun_clauses", tree) == 2_000
    assert measure("saying", tree) == 0


def test_matches_are_listed_with_the_worst_file_first() -> None:
    """Each with its line and the text of it."""
    tree = build_tree(
        '# Told once.\ndef f():\n    """Send it.\n\n    That of nobody.\n    """\n',
        **{"docs/a.md": "One.\n\nWhoever.\n"},
    )
    assert list(list_matches(tree)) == [
        f"{PATH}:1: Told: Told once.",
        f"{PATH}:5: That of: That of nobody.",
        f"{PATH}:5: nobody: That of nobody.",
        "docs/a.md:3: Whoever: Whoever.",
    ]


def test_ceilings() -> None:
    """Comments, other numbers and the times stay."""
    text = "# why\nlines = 5\nmodules = 2\n\n[times]\nlines = ['1', '2']\n"
    assert lower(text, {"lines": 4, "modules": 3}) == text.replace("lines = 5", "lines = 4")
    # Above its ceiling or without one is a fault. At its ceiling is none.
    faults = list(find_faults({"a": 2, "b": 2, "c": 1}, {"a": 2, "b": 1, "d": 1}))
    assert faults == [
        "b is 2, above its ceiling of 1",
        "c is 1 and has no ceiling",
        "d has a ceiling, but is not measured",
    ]
    # Every measure has a ceiling. And every ceiling a measure.
    assert read_ceilings(CEILINGS.read_text()).keys() == {each.key for each in MEASURES}
    # The table shows value goal and ceiling. And at the end the times that were recorded.
    values = {each.key: 1234 for each in MEASURES}
    lines = list(build_table(values, {"modules": 1500, "times": {"./task test": ["2:15", "1:30"]}}))
    assert lines[2].split() == ["modules", "(without", "`__init__`)", "1,234", "535", "1,500"]
    assert lines[-1].split() == ["./task", "test", "2:15", "1:30"]
