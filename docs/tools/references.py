"""Checks what the documents refer to: names of the code, paths of the repository, links and their anchors."""

import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_PACKAGES = "core|coordinator|workers|server|cli|dashboards"
_NAME = re.compile(rf"\boku_(?:{_PACKAGES})(?:\.\w+)+")
_FOLDERS = "charts|cli|coordinator|core|docs|k8s|requirements|server|tests|workers"
_PATH = re.compile(rf"(?<![\w./:<-])(?:{_FOLDERS})/[\w./-]*[\w/]")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def find_faults() -> list[str]:
    """What the documents refer to and what does not exist, one line each."""
    return [f"{path.relative_to(ROOT)}: {fault}" for path in list_documents() for fault in check(path, ROOT)]


def list_documents() -> list[Path]:
    """The documents of the project."""
    folders = ("docs", "docs/decisions", "charts/oku", "k8s")
    found = (path for folder in folders for path in sorted((ROOT / folder).glob("*.md")))
    return [*sorted(ROOT.glob("*.md")), *found]


def check(document: Path, root: Path) -> Iterator[str]:
    """The faults of one document of the repository at `root`."""
    text = document.read_text()
    for name in sorted(set(_NAME.findall(text))):
        if not _is_name(name):
            yield f"{name} does not exist"
    # A path in a link is relative to the document, any other to the repository.
    for path in sorted(set(_PATH.findall(_LINK.sub("]()", text)))):
        if not (root / path).exists():
            yield f"{path} does not exist"
    for link in dict.fromkeys(_LINK.findall(text)):
        path, _, anchor = link.partition("#")
        if path.startswith(("http:", "https:", "mailto:")):
            continue
        target = (document.parent / path) if path else document
        if not target.exists():
            yield f"the link {link} leads nowhere"
        elif anchor and anchor not in _list_anchors(target.read_text()):
            yield f"the link {link} names a heading that does not exist"


def _is_name(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@cache
def _list_anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}
