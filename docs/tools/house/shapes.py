"""Counts of shapes of one fact, callbacks and tables."""

import ast
import re
from collections.abc import Iterator

from docs.tools.house.tree import Module, Tree

_COUNTS = re.compile(r"_?(?:outcomes|statuses|not_sent|causes)")
_TIMES = re.compile(r"_?(?:latency|latencies|lateness|response_time|times|longest|histograms?)(?:_\w+)?")
_TIME_TYPES = re.compile(r"\b(?:Histogram|HistogramSnapshot|LatencySummary)\b")

_RESULT = re.compile(r"\w*(?:Summary|Tick)")
_LAYOUT = re.compile(r"(?:\w*Table|Cell|Column|Html|Markdown)")

_NEW_TIME = re.compile(
    r"first_byte|FIRST_BYTE|\bsplit_latency\b|\b(?:connect|tls)_us\b|\bTime\.(?:CONNECT|TLS|TRANSFER)\b"
    r"|\btimings\b|TIMINGS\b|\bbuild_timing\b|\bTimingSummary\b|\bTimingDistributions\b"
    r"|\b(?:request_timing|timing_(?:ms|summary|schema|view|table))\b"
)
_TOUCHED = ("charts/", "tests/", "docs/")
_NOT_TOUCHED = ("docs/decisions/", "docs/tools/", "docs/benchmarks", "tests/benchmarks/", "tests/unit/docs/")


def list_shapes(tree: Tree) -> list[str]:
    """List the classes that hold how many requests ended how, and how long they took.

    A class counts if it declares, or assigns to `self`, both a count (`outcomes`, `statuses`, `not_sent`,
    `causes`) and a time: by name (`latency…`, `response_time…`, `lateness…`, `times…`, `longest…`) or by the
    type of a distribution. A class with one field that holds another such class does not.
    """
    return [
        f"{module.path}: {node.name}"
        for module in tree.modules
        for node in module.classes
        if _holds_counts_and_times(node)
    ]


def _holds_counts_and_times(node: ast.ClassDef) -> bool:
    fields = dict(_list_fields(node))
    return any(map(_COUNTS.fullmatch, fields)) and any(
        _TIMES.fullmatch(name) or _TIME_TYPES.search(annotation) for name, annotation in fields.items()
    )


def _list_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Names of fields with their annotations; an empty one for a field that has none."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.AnnAssign):
            if name := _find_field(inner.target, is_declared=inner in node.body):
                yield name, ast.unparse(inner.annotation)
        elif isinstance(inner, ast.Assign):
            for target in inner.targets:
                for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if name := _find_field(each, is_declared=False):
                        yield name, ""


def _find_field(target: ast.expr, *, is_declared: bool) -> str | None:
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr
    return target.id if isinstance(target, ast.Name) and is_declared else None


def list_response_time(tree: Tree) -> list[str]:
    """List the modules in which `response_time` occurs, as a part of a name or of a text, too.

    The dashboards are left out: they name the metrics, whose names stay.
    """
    return [
        str(module.path)
        for module in tree.modules
        if "response_time" in module.text and module.path.parts[0] != "charts"
    ]


def list_new_time(tree: Tree) -> list[str]:
    """List the files that a new measured time touches, by the example of the last ones.

    Commit 6b044ba4 split the time of a request into connecting, TLS, first byte and transfer, in 50 files.
    These are the files of product, tests, charts and pages that name one of these times, or what was made for
    them alone (`timings`, `timing_ms`, `TimingSummary` …); in a tree with an enum of times, its members.
    """
    product = {str(module.path) for module in tree.product}
    return [
        path
        for path, text in tree.files.items()
        if (path in product or path.startswith(_TOUCHED))
        and not path.startswith(_NOT_TOUCHED)
        and _NEW_TIME.search(text)
    ]


def list_tables(tree: Tree) -> list[str]:
    """List the modules that lay out results: import a type of them and something to draw with.

    The type is `…Summary` or `…Tick` of `oku_core`. To draw with are rich, anything named `…Table`, `Cell`,
    `Column`, `Html` or `Markdown`, and lines of dashes, which make a table in Markdown.
    """
    return [str(module.path) for module in tree.modules if _imports_result(module) and _has_layout(module)]


def _imports_result(module: Module) -> bool:
    return any(
        source.startswith("oku_core.") and _RESULT.fullmatch(name) for source, name in _list_imports(module)
    )


def _has_layout(module: Module) -> bool:
    return any(
        source.split(".")[0] == "rich" or _LAYOUT.fullmatch(name) for source, name in _list_imports(module)
    ) or any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " --- |" in node.value
        for node in module.nodes
    )


def _list_imports(module: Module) -> Iterator[tuple[str, str]]:
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def count_callables(tree: Tree) -> int:
    """Count the parameters and fields whose annotation spells `Callable`, alone or within another type."""
    return sum(
        _spells_callable(node.annotation)
        for module in tree.modules
        if "Callable" in module.text
        for node in module.nodes
        if isinstance(node, ast.arg | ast.AnnAssign)
    )


def _spells_callable(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(node, ast.Name) and node.id == "Callable" for node in ast.walk(annotation)
    )
