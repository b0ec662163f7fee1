"""Who decodes JSON and YAML, by the syntax tree of every module."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = sorted(path for folder in ROOT.glob("*/src") for path in folder.rglob("*.py"))
READERS = {"json": "core/src/oku_core/json_reader.py", "yaml": "cli/src/oku_cli/yaml_reader.py"}
JSON_DECODERS = {"load", "loads", "decode", "Decoder", "JSONDecoder"}
YAML_WRITERS = {"dump", "safe_dump", "SafeDumper", "ScalarNode"}
LEDGER = "coordinator/src/oku_coordinator/ledger/"


def find_decoders(tree: ast.AST) -> set[str]:
    """What a module decodes itself: `json`, `yaml`, and `own` for what Oku wrote."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                names[name] = each.name if each.asname else name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    found = {judge(meaning) for meaning in names.values()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(judge(resolve(node, names)))
        if isinstance(node, ast.Await) and isinstance(call := node.value, ast.Call):
            is_answer = isinstance(call.func, ast.Attribute) and call.func.attr == "json"
            found.add(
                "json" if is_answer else ""
            )  # of a client of HTTP, which decodes with the standard library
    return found - {""}


def resolve(node: ast.expr, names: Mapping[str, str]) -> str:
    """The full name that an expression stands for; empty if it is none."""
    if isinstance(node, ast.Attribute):
        holder = resolve(node.value, names)
        return f"{holder}.{node.attr}" if holder else ""
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def judge(name: str) -> str:
    """What a full name decodes; empty if nothing."""
    if name == "oku_core.json_reader.build_own_decoder":
        return "own"
    *holder, last = name.split(".")
    if "json" in holder and last in JSON_DECODERS:
        return "json"
    return "yaml" if {"yaml", "ruamel"} & {*holder} and last not in YAML_WRITERS else ""


WAYS = {
    "import json\njson.loads(x)": {"json"},
    "import json as j\nf = j.load": {"json"},
    "from json import loads": {"json"},
    "from json.decoder import JSONDecoder": {"json"},
    "import json.decoder\njson.decoder.JSONDecoder()": {"json"},
    "import msgspec\nmsgspec.json.decode(x)": {"json"},
    "from msgspec import json\njson.Decoder(int)": {"json"},
    "from msgspec.json import Decoder": {"json"},
    "from kombu.utils.json import loads": {"json"},
    "async def f(r): return await r.json()": {"json"},
    "import yaml\nyaml.load(x, L)": {"yaml"},
    "from yaml import safe_load": {"yaml"},
    "import msgspec\nmsgspec.yaml.decode(x)": {"yaml"},
    "from oku_core.json_reader import build_own_decoder": {"own"},
    "import json, yaml, msgspec\njson.dumps(msgspec.json.encode(yaml.safe_dump(r.json())))": set(),
}


def test_each_way_to_decode_is_found() -> None:
    """The next test would miss any other."""
    wrong = {
        text: found for text, wanted in WAYS.items() if (found := find_decoders(ast.parse(text))) != wanted
    }
    assert not wrong


def test_no_other_module_decodes_json_or_yaml() -> None:
    """All limits are in one place. Only the ledger reads text that no one but Oku can have written."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in SOURCES}
    found = {
        path: find_decoders(ast.parse(text)) if re.search(b"json|yaml|own_decoder", text) else set()
        for path, text in texts.items()
    }
    assert len(found) > 500
    assert {path for path, kinds in found.items() if "json" in kinds} == {READERS["json"]}
    assert {path for path, kinds in found.items() if "yaml" in kinds} == {READERS["yaml"]}
    assert not {path for path, kinds in found.items() if "own" in kinds and not path.startswith(LEDGER)}
