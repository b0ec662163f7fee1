"""The files of a checkout or of a commit, and the Python modules of the product among them."""

import ast
import io
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

_READ = frozenset({".c", ".h", ".js", ".json", ".lua", ".md", ".py", ".sql", ".toml", ".ts", ".txt", ".yaml"})
_PRODUCT = re.compile(r"\w+/src/.+\.py|charts/dashboards/.+\.py")


@dataclass(frozen=True)
class Module:
    """A Python module.

    Attributes:
        path: relative to the root of the repository.
        text: its source.
    """

    path: PurePosixPath
    text: str

    @property
    def name(self) -> str:
        """The last part of its import name."""
        return self.path.stem

    @property
    def line_count(self) -> int:
        """Lines, with comments, docstrings and blank ones."""
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a package."""
        return self.name == "__init__"

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of its syntax tree, parents before children."""
        return tuple(ast.walk(ast.parse(self.text)))

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """Every class, nested ones too."""
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]


class Tree:
    """The source tree of Oku.

    Args:
        files: texts by path, relative to the root of the repository.

    Attributes:
        product: the modules of all packages: `PART/src` and `charts/dashboards`.
        tests: the modules of the tests, without the benchmarks.
        benchmarks: those of the benchmarks, beside the tests or among them.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        modules = [Module(PurePosixPath(path), text) for path, text in files.items() if path.endswith(".py")]
        self.product = [module for module in modules if _PRODUCT.fullmatch(str(module.path))]
        self.benchmarks = [module for module in modules if _is_benchmark(module.path)]
        self.tests = [
            module for module in modules if module.path.parts[0] == "tests" and not _is_benchmark(module.path)
        ]

    @property
    def modules(self) -> list[Module]:
        """The modules of the product without `__init__`."""
        return [module for module in self.product if not module.is_package]


def _is_benchmark(path: PurePosixPath) -> bool:
    return path.parts[0] == "benchmarks" or path.parts[:2] == ("tests", "benchmarks")


def read_checkout(folder: Path) -> Tree:
    """Read a working tree, changes and new files included."""
    listed = _call_git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode()
    paths = [path for path in sorted(set(listed.split("\0"))) if Path(path).suffix in _READ]
    return Tree({path: (folder / path).read_text() for path in paths if (folder / path).is_file()})


def read_commit(folder: Path, commit: str) -> Tree:
    """Read a commit of the repository to which a folder belongs."""
    packed = _call_git(folder, "archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [member for member in archive if member.isfile() and Path(member.name).suffix in _READ]
        read = ((member.name, archive.extractfile(member)) for member in members)
        return Tree({name: file.read().decode() for name, file in read if file})


def _call_git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603  # ours
