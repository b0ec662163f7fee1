"""Each place in the code that puts something into a URL, found by the syntax tree."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
ESCAPING = {"quote", "urlencode"}
SAFE = {
    "cli/commands/run.py": {"file.strip().lstrip(':/') or 'host/'": "for a message, what a user has typed"},
    "cli/imports/curl/curl_command.py": {
        "url": "of a curl command, a URL without its scheme",
        "values['proxy']": "of a curl command, a URL without its scheme",
    },
    "cli/local/stack_plan.py": {
        "format_address(listening[0])": "an address and a port, in brackets for IPv6"
    },
    "cli/kube/tunnel.py": {"self._port": "digits that a pattern has found"},
    "coordinator/kube/dns.py": {"ip": "of a pod, in brackets for IPv6", "port": "a number"},
    "coordinator/servers/served_count.py": {
        "netloc": "an address, in brackets for IPv6",
        "parts.port or 80": "a number",
        "parts.path": "part of a URL",
    },
    "core/http_client/cookies.py": {
        "authority": "part of a URL",
        "place.authority": "part of a URL",
    },
    "core/http_client/redirects.py": {"parts.netloc": "part of a URL"},
    "core/http_client/request_head.py": {
        "url.authority": "part of a URL",
        "origin.host_port_subcomponent": "part of a URL",
    },
    "core/messaging/order.py": {
        "host": "checked by the coordinator, in brackets for IPv6",
        "self.port": "a number",
    },
    "core/process/redaction.py": {
        "MASK if url.end() == end else _redact_rest(url[1], queries=queries)": "for a log",
    },
    "core/spec/description.py": {
        "url.authority.rpartition('@')[2]": "part of a URL",
        "url.path": "part of a URL",
    },
    "core/spec/values/url.py": {"format_value(text.lstrip(':/') or 'host/')": "for a message"},
    "scenarios/oku/http/request_plan.py": {
        "self.place.host_port_subcomponent": "part of a URL",
        "self.build_target(index, row, query)": "a target as it is sent, which is escaped",
    },
}
"""What is put into a URL as it is, by module, and why that may be."""


def find_parts(tree: ast.AST) -> Iterator[str]:
    """What stands behind the `://` of a text, or the `file:` at its begin, and is not escaped."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from _find_inserted(node)
        elif isinstance(node, ast.BinOp) and _has_scheme(node.left):
            yield ast.unparse(node.right)
        elif isinstance(node, ast.Attribute) and node.attr == "format" and _has_scheme(node.value):
            yield ast.unparse(node)


def _find_inserted(text: ast.JoinedStr) -> Iterator[str]:
    is_url = False
    for part in text.values:
        if isinstance(part, ast.FormattedValue):
            if is_url and not _is_escaped(part.value):
                yield ast.unparse(part.value)
        else:
            is_url |= _has_scheme(part)


def _has_scheme(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and ("://" in node.value or node.value.startswith("file:"))
    )


def _is_escaped(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ESCAPING


def test_what_goes_into_a_url_is_escaped_or_known_to_need_no_escaping() -> None:
    """The name of a folder, a user or a run may have any character; Jenkins makes job@2 and feature%2Fx."""
    found: dict[str, set[str]] = {}
    for part in ("cli", "coordinator", "core", "scenarios", "server", "workers"):
        source = ROOT / part / "src"
        for path in source.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            # Most modules have no URL, and need not be parsed.
            if re.search("://|file:", text) and (parts := set(find_parts(ast.parse(text)))):
                module = path.relative_to(source)
                name = module if part == "scenarios" else module.relative_to(module.parts[0])
                found[f"{part}/{name.as_posix()}"] = parts

    assert found == {module: set(parts) for module, parts in SAFE.items()}


def test_each_way_to_make_a_url_is_found() -> None:
    """As long as it is written in one expression."""
    for code in (
        'f"redis+socket://{path}"',
        'f"{scheme}://{path}"',
        'f"file:{path}?mode=ro"',
        '"http://" + path',
        '"http://%s/" % path',
        '"http://{}/".format(path)',
    ):
        assert list(find_parts(ast.parse(code))), code
    assert list(find_parts(ast.parse('f"{path}: http://{quote(path)}?{urlencode(query)}"'))) == []
