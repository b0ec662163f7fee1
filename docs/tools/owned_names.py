"""Finds names that nobody owns: hosts, repositories, images and packages that a stranger could register.

A host that a reader or a program asks must belong to a project that we know, or be a name that nobody can
register: `localhost`, or an example host (RFC 2606). Nothing of Oku is released, so its own name in a package
index or a public registry is not ours: what is fetched under it must be named by a path or by `localhost`.
"""

import re
from collections.abc import Callable, Iterator
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
_OWNERS = {
    "github.com": frozenset(
        {"actions", "google", "grafana", "hatoo", "locustio", "valkey-io", "wg", "yannh"}
    ),
    "docker.io": frozenset({"grafana", "library", "valkey"}),
}
"""The accounts that we know, by the host where anybody may have one."""

_URL = re.compile(r"\b(?:https?|oci|git|ssh|wss?)://(?:[^\s/@\"'`]*@)?([A-Za-z0-9.-]+)((?:/[\w.-]+)?)")
_EMAIL = re.compile(r"(?<![\w/:.@-])[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,})\b")
_ACTION = re.compile(r"\buses:\s*([\w-]+)/")
_HUB = re.compile(r"\b(?:index\.)?docker\.io/([\w-]+)/")
_OWN_IMAGE = re.compile(r"(?<![\w/.\"?-])(?<!repository: )((?:[\w.:-]+/)*)oku/oku(?![\w/-])")
_FETCH = re.compile(
    r"(?:\b(?:(?:docker|podman|nerdctl) (?:run|pull|create)|pip3? install|pipx (?:install|run)|uvx"
    r"|uv (?:tool (?:install|run)|pip install)|npm (?:install|i)|npx|(?:brew|conda|snap) install|image:)"
    r"|^FROM)(?= )([^\n`|;&]*)",
    re.MULTILINE,
)
_OWN_NAME = re.compile(r"['\"]?oku[\w-]*(?:\[[\w,]*\])?(?:[:@=<>~!]+[\w.]+)?['\"]?")
"""Ours as a package or an image, with extras, version or tag; a volume such as `oku:/data` is none."""


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
    finders: tuple[Callable[[str], Iterator[str]], ...] = (_find_hosts, _find_accounts, _find_own)
    for find in finders:
        yield from dict.fromkeys(find(text))


def _find_hosts(text: str) -> Iterator[str]:
    for host, _ in _URL.findall(text):
        is_known = "." not in host.rstrip(".") or host in _HOSTS or host.replace(".", "").isdigit()
        if not is_known and not _RESERVED.fullmatch(host):
            yield f"the host {host} is neither known nor an example"
    for host in _EMAIL.findall(text):
        if not _RESERVED.fullmatch(host):
            yield f"the host of an e-mail address, {host}, is not an example"


def _find_accounts(text: str) -> Iterator[str]:
    named = [(host, path.removeprefix("/")) for host, path in _URL.findall(text)]
    named += [("github.com", owner) for owner in _ACTION.findall(text)]
    named += [("docker.io", owner) for owner in _HUB.findall(text)]
    for host, owner in named:
        if host in _OWNERS and owner not in _OWNERS[host]:
            yield f"{host}/{owner} has no owner that we know"


def _find_own(text: str) -> Iterator[str]:
    for registry in _OWN_IMAGE.findall(text):
        host = registry.partition("/")[0]
        if host != "localhost" and not _RESERVED.fullmatch(host):
            yield f"the image {registry}oku/oku is not ours: name localhost/oku/oku, or an example registry"
    for fetched in _FETCH.findall(text):
        # What --from names is fetched; then comes a command.
        words = fetched.partition("--from ")[2].split()[:1] or fetched.split()
        name = next(filter(_OWN_NAME.fullmatch, words), "")
        if name and "oku/oku" not in fetched:
            yield f"{name} would come from a stranger: give a path, or localhost/oku/oku"
