"""Writes what is made from the code: schemas, parts of pages, dashboards, files of the chart.

`--check` writes nothing and fails when a file is not as it would be written.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from docs.tools.api_reference import build_calls, build_objects
from docs.tools.chart_values import build_chart_files
from docs.tools.command_reference import build_commands, build_variables
from docs.tools.generated_parts import build_table, replace_parts
from docs.tools.manifests import build_manifests
from docs.tools.openapi import build_openapi
from docs.tools.rooms import build_rooms_table
from docs.tools.spec_reference import build_engines, build_fields
from docs.tools.version import build_files as build_versions

from oku_core.accounting.run_state import FINAL_STATES, TRANSITIONS, RunState
from oku_core.summary.summary import Summary
from oku_dashboards.dashboards import build_files as build_dashboards

_DOCS = Path(__file__).parents[1]
_CONTRACTS = _DOCS.parent / ".importlinter"


def build_schema() -> str:
    """The JSON Schema of a summary."""
    schema = msgspec.json.schema(Summary)
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Summary of a run of Oku"}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def build_state_picture() -> str:
    """The states of a run as a Mermaid diagram."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {RunState.PENDING}"]
    for state, following in TRANSITIONS.items():
        lines += [f"    {state} --> {successor}" for successor in sorted(following)]
    lines += [f"    {state} --> [*]" for state in RunState if state in FINAL_STATES]
    return "\n".join([*lines, "```"])


def build_decisions(folder: Path) -> str:
    """The table of the decisions in a folder: number and title of each."""
    titles = {path.name: path.read_text().partition("\n")[0] for path in sorted(folder.glob("[0-9]*.md"))}
    rows = ([f"[{name[:4]}]({name})", title.partition(". ")[2]] for name, title in titles.items())
    return build_table(["", ""], rows)


def build_pages(openapi: str) -> dict[Path, str]:
    """The pages that have generated parts."""
    document = json.loads(openapi)
    parts = {
        "api.md": {"calls": build_calls(document), "objects": build_objects(document)},
        "architecture.md": {"states": build_state_picture()},
        "rooms.md": {"rooms": build_rooms_table(_CONTRACTS.read_text())},
        "decisions/README.md": {"decisions": build_decisions(_DOCS / "decisions")},
        "commands.md": {"commands": build_commands()},
        "environment.md": {"variables": build_variables()},
        "spec.md": {"fields": build_fields(), "engines": build_engines()},
    }
    return {_DOCS / name: replace_parts((_DOCS / name).read_text(), parts[name]) for name in parts}


def build_files() -> dict[Path, str]:
    """All generated files except the manifests, each with the text that it must contain."""
    openapi = build_openapi()
    return {
        _DOCS / "summary.schema.json": build_schema(),
        _DOCS / "openapi.json": openapi,
        **build_pages(openapi),
        **build_dashboards(),
        **build_chart_files(),
        **build_versions(),
    }


def main() -> int:
    """Write the files or, with `--check`, compare them; return the exit code."""
    is_check = "--check" in sys.argv[1:]
    # Helm checks values against the schema of the chart, so manifests come after it.
    stale = [path for build in (build_files, build_manifests) for path in _write(build(), is_check=is_check)]
    return int(is_check and bool(stale))


def _write(files: Mapping[Path, str], *, is_check: bool) -> Iterator[Path]:
    for path, text in files.items():
        if path.exists() and path.read_text() == text:
            continue
        name = path.relative_to(_DOCS.parent)
        if is_check:
            sys.stderr.write(f"{name} is stale: run ./task fix\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            sys.stdout.write(f"wrote {name}\n")
        yield path


if __name__ == "__main__":
    sys.exit(main())
