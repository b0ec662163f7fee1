"""Finds names that nobody owns: hosts, images, packages and repositories that a stranger could register.

What a reader copies, and what a program fetches by default, must belong to a project that we know, or be a
name that nobody can register: `localhost`, an example host (RFC 2606), or a path. Nothing of Oku is released,
so its own name in a package index or a public registry is not ours.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from docs.tools.references import ROOT, list_documents

_SOURCES = ("charts", "cli/src", "coordinator/src", "core/src", "scenarios/src", "server/src", "workers/src")
_FOLDERS = (*_SOURCES, "docs", "k8s", ".ci", ".github")
_FILES = ("Dockerfile", "Taskfile.yml", "hatch_build.py", "pyproject.toml", "task")
_KINDS = frozenset({".json", ".md", ".py", ".sh", ".toml", ".tpl", ".txt", ".yaml", ".yml", ""})
_LEFT_OUT = (ROOT / "docs" / "benchmarks", ROOT / "docs" / "tools")
"""Results of benchmarks, and programs that name what they refuse; the page with the results is read."""

_RESERVED = re.compile(
    r"(?:.+\.)?(?:example|invalid|test|localhost|example\.(?:com|net|org)|svc|cluster\.local|internal)\.?"
)
"""Names that no registry of domains gives to anybody, and those within a cluster or a machine."""
_HOSTS = frozenset(
    {
        "docs.kernel.org", "github.com", "grafana.com", "json-schema.org", "keepachangelog.com",
        "kind.sigs.k8s.io", "semver.org", "www.artificialworlds.net", "www.rfc-editor.org", "www.w3.org",
    }
)  # fmt: skip
_REPOSITORIES = frozenset({"google", "grafana", "hatoo", "locustio", "wg", "yannh"})
"""Owners at GitHub."""
_ACTIONS = frozenset({"actions"})
_IMAGES = frozenset({"grafana", "library", "valkey"})
"""Owners at Docker Hub; `library` has the official images, which have no owner in their short name."""
_OFFICIAL = frozenset({"python"})
_PACKAGES = frozenset({"kubernetes"})
"""What is neither pinned in requirements/run.txt nor a path."""

_URL = re.compile(r"\b(?:https?|oci|git|ssh|wss?)://(?:[^\s/@\"'`]*@)?([A-Za-z0-9.-]+)((?:/[\w.-]+)?)")
_EMAIL = re.compile(r"(?<![\w/:.@-])[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,})\b")
_ACTION = re.compile(r"\buses:\s*([\w-]+)/")
_OWN_IMAGE = re.compile(r"(?<![\w/.\"?-])(?<!repository: )((?:[\w.:-]+/)*)oku/oku(?![\w/-])")
_HUB = re.compile(r"\b(?:index\.)?docker\.io/([\w-]+)/")
_BASE = re.compile(r"(?:^FROM |\bimage: |PYTHON_IMAGE=)([\w./-]+):[\w.-]+", re.MULTILINE)
_RUN = re.compile(r"\b(?:docker|podman|nerdctl) (?:run|pull|create)\b([^\n`|;&]*)")
_INSTALL = re.compile(
    r"\b(?:pip3? install|pipx (?:install|run)|uv (?:tool (?:install|run)|pip install)|uvx"
    r"|npm (?:install|i)|npx|brew install|conda install|snap install)((?: [^\s`|;&)]+)*)"
)
_PROGRAM_RUNNERS = ("uvx", "npx", "pipx run", "uv tool run")
_NAME = re.compile(r"['\"]?([A-Za-z][\w.-]*)(?:\[[\w,]*\])?(?:[=<>~!@].*)?['\"]?,?")


def find_faults() -> list[str]:
    """Names that nobody owns, one line each with their place."""
    return [
        f"{path.relative_to(ROOT)}: {fault}" for path in list_files() for fault in check(path.read_text())
    ]


def list_files() -> list[Path]:
    """The documents, and the files that name what is fetched: sources, charts, builds and workflows."""
    found = {*list_documents(), *(ROOT / name for name in _FILES)}
    for folder in _FOLDERS:
        found |= {path for path in (ROOT / folder).rglob("*") if path.suffix in _KINDS and path.is_file()}
    return sorted(path for path in found if not any(folder in path.parents for folder in _LEFT_OUT))


def check(text: str) -> Iterator[str]:
    """The names in a text that nobody owns, each with what is wrong."""
    finders: tuple[Callable[[str], Iterator[str]], ...] = (_find_hosts, _find_images, _find_packages)
    for find in finders:
        yield from dict.fromkeys(find(text))


def _find_hosts(text: str) -> Iterator[str]:
    for host, path in _URL.findall(text):
        is_known = "." not in host.rstrip(".") or host in _HOSTS or host.replace(".", "").isdigit()
        if not is_known and not _RESERVED.fullmatch(host):
            yield f"the host {host} is neither known nor an example"
        elif host == "github.com" and path.removeprefix("/") not in _REPOSITORIES:
            yield f"github.com{path} has no owner that we know"
    for host in _EMAIL.findall(text):
        if not _RESERVED.fullmatch(host):
            yield f"the host of an e-mail address, {host}, is not an example"
    for owner in _ACTION.findall(text):
        if owner not in _ACTIONS:
            yield f"the action of {owner} has no owner that we know"


def _find_images(text: str) -> Iterator[str]:
    for registry in _OWN_IMAGE.findall(text):
        host = registry.partition("/")[0]
        if host != "localhost" and not _RESERVED.fullmatch(host):
            yield f"the image {registry}oku/oku is not ours: name localhost/oku/oku, or an example registry"
    for owner in _HUB.findall(text):
        if owner not in _IMAGES:
            yield f"docker.io/{owner} has no owner that we know"
    for image in _BASE.findall(text):
        if "/" not in image and image not in _OFFICIAL:
            yield f"the image {image} is not an official one that we know"
    for words in _RUN.findall(text):
        if any(re.fullmatch(r"oku(?::[\w.]+)?", word) for word in words.split()) and "oku/oku" not in words:
            yield "the image oku would come from a public registry: name localhost/oku/oku"


def _find_packages(text: str) -> Iterator[str]:
    for match in _INSTALL.finditer(text):
        words = match[1].split()
        if "--from" in words:
            words = words[words.index("--from") + 1 :][:1]
        elif match[0].startswith(_PROGRAM_RUNNERS):
            words = words[:1]
        for word in words:
            name = _NAME.fullmatch(word)
            if name and not name[1].isupper() and name[1].lower() not in _list_packages():
                yield f"{match[0].strip()}: the package {name[1]} has no owner that we know, give a path"


@cache
def _list_packages() -> frozenset[str]:
    """Packages of others that Oku depends on."""
    locked = (ROOT / "requirements" / "run.txt").read_text()
    return frozenset(re.findall(r"^([a-z0-9][\w.-]*)==", locked, re.MULTILINE)) | _PACKAGES
