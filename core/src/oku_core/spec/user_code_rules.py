"""What a spec may say when it runs user code, and what only then.

A fault is the key that is to blame and what is wrong; the parser adds where that key was given.
"""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from oku_core.errors import format_value
from oku_core.spec.load_rules import Fault
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER, list_names

REQUEST_KEYS = (
    "url", "method", "body", "targets", "expect-status", "expect-body", "expect-match", "expect-json",
    "expect-header", "expect-size", "expect-within", "max-redirects", "cookies", "servers", "delay",
)  # fmt: skip
"""Keys of the requests that a spec describes: user code makes its own."""
_ONLY_USER_CODE = (
    "scenario", "include", "hooks", "users", "iterations", "iteration-timeout", "user-classes", "tags",
    "exclude-tags",
)  # fmt: skip
_ONLY_LOCUST = ("user-classes", "tags", "exclude-tags")


def find_user_code_fault(spec: Spec, given: Collection[str]) -> Fault | None:
    """Say which key does not go with the engine of a spec; None if all do.

    Args:
        spec: the spec.
        given: the keys that the user gave.
    """
    if not spec.runs_user_code:
        return _find_missing_engine(spec, given)
    if spec.scenario is None:
        return "engine", f"the engine {spec.engine} runs user code, but scenario is not given"
    for key in REQUEST_KEYS:
        if key in given:
            other = (
                "; base-url, on the command line --host, is what comes before their URLs"
                if key == "url"
                else ""
            )
            return key, f"cannot be combined with user code, which makes its own requests{other}"
    if fault := _find_path_fault([spec.scenario.path, *(file.path for file in spec.include)]):
        return "include", fault
    if spec.engine is Engine.LOCUST:
        return _find_locust_fault(spec, given)
    only_locust = next((key for key in _ONLY_LOCUST if key in given), None)
    return None if only_locust is None else (only_locust, "applies only to locustfiles")


def _find_path_fault(paths: Sequence[str]) -> str | None:
    """Say which file would take the place of another one, or stand below it; None if none does."""
    places = set(paths)
    if len(places) != len(paths):
        return f"{format_value(paths[0])} is the path of the scenario"
    for path in paths:
        if over := places.intersection(map(str, PurePosixPath(path).parents)):
            return f"{format_value(path)} cannot stand below {format_value(min(over))}, which is a file"
    return None


def _find_locust_fault(spec: Spec, given: Collection[str]) -> Fault | None:
    if spec.hooks:
        return "hooks", "a locustfile has events instead: test_start and test_stop"
    if "keepalive" in given and not spec.keepalive:
        return "keepalive", "the clients of a locustfile keep connections; let it send Connection: close"
    columns = set() if spec.data is None else set(spec.data.columns)
    for header in spec.headers:
        if INDEX_PLACEHOLDER in header.value or columns & set(list_names(header.value)):
            return "header", f"{format_value(header)} differs between requests; let the locustfile send it"
    return None


def _find_missing_engine(spec: Spec, given: Collection[str]) -> Fault | None:
    if spec.scenario is not None:
        return "scenario", f"the engine {spec.engine} runs no user code, use python or locust"
    for key in _ONLY_USER_CODE:
        if key in given:
            return key, "applies only to user code: a scenario or a locustfile"
    return None
