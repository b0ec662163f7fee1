"""Reads the version from pyproject.toml, writes it into what must repeat it, and checks it in documents."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from docs.tools.references import list_documents

ROOT = Path(__file__).parents[2]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

_REPEATED = {
    ROOT / "charts" / "oku" / "Chart.yaml": r"^((?:version|appVersion): )\S+$",
    ROOT / "Dockerfile": r"^(ARG VERSION=)\S+$",
    ROOT / "cli" / "src" / "oku_cli" / "main.py": r'^(_VERSION = ")[^"]*',
}
"""Files that are read without pyproject.toml, and what stands in them before the version."""

_NAMED = re.compile(r"\boku(?:/\$?\w+)?(?::|==|-)(\d+\.\d+\.\d+\w*)")
_RELEASE = re.compile(r"^## \[(\d[^\]]*)\]", re.MULTILINE)


def build_files() -> dict[Path, str]:
    """The files that must repeat the version, each with the text that it must contain."""
    return {path: repeat(path.read_text(), before, VERSION) for path, before in _REPEATED.items()}


def repeat(text: str, before: str, version: str) -> str:
    """A text with the version behind each match of `before`; `ValueError` if nothing matches."""
    result, found = re.subn(before, rf"\g<1>{version}", text, flags=re.MULTILINE)
    if not found:
        raise ValueError(f"nothing matches {before}")
    return result


def find_faults() -> list[str]:
    """Where a document names another version of Oku than this one, one line each."""
    changelog = ROOT / "CHANGELOG.md"
    return [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in list_documents()
        for fault in check(path.read_text(), VERSION, is_changelog=path == changelog)
    ]


def check(text: str, version: str, *, is_changelog: bool = False) -> Iterator[str]:
    """What a document says of images, files and releases of another version."""
    for match in _NAMED.finditer(text):
        if match[1] != version:
            yield f"{match[0]} is not of version {version}"
    if is_changelog:
        releases = _RELEASE.findall(text)
        if releases[:1] != [version]:
            yield f"the newest release is {', '.join(releases[:1]) or 'missing'}, not {version}"
