import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "core/src/oku_core",
    "coordinator/src/oku_coordinator",
    "workers/src/oku_workers",
    "server/src/oku_server",
    "scenarios/src/oku",
    "cli/src/oku_cli",
)


def _list_imports(folder: Path) -> set[str]:
    """The packages that modules of a folder import, also within functions, but neither Python's nor ours."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
    # Type checkers bring the types of the standard library.
    known = {*sys.stdlib_module_names, "_typeshed"}
    return {name for name in found if name not in known and name.partition("_")[0] != "oku"}


def _list_pinned(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9][\w.-]*)==(\S+)", text, re.MULTILINE))


@pytest.mark.heavy
@pytest.mark.parametrize("package", PACKAGES)
def test_the_image_has_all_that_a_part_imports(package: str) -> None:
    """The Dockerfile installs requirements/image.txt and no more."""
    distributions = packages_distributions()
    needed = {distributions[name][0].lower().replace("_", "-") for name in _list_imports(ROOT / package)}
    assert needed
    assert needed <= _list_pinned("image").keys()


def test_the_image_has_what_locustfiles_import() -> None:
    """Locust runs on gevent, and `FastHttpUser` on a client of its own."""
    assert {"locust", "gevent", "geventhttpclient"} <= _list_pinned("image").keys()


def test_no_build_takes_a_data_folder_along() -> None:
    """Someone may have started Oku in a folder of sources, and `.oku` has keys and the ledger in it."""
    shown = (ROOT / ".dockerignore").read_text().splitlines()
    assert shown.index("**/.oku") > max(place for place, line in enumerate(shown) if line.startswith("!"))
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert all(".oku" in targets[name]["exclude"] for name in ("sdist", "wheel"))


def test_a_build_is_given_each_package() -> None:
    """What the Dockerfile copies is not hidden from it by .dockerignore."""
    shown = (ROOT / ".dockerignore").read_text().splitlines()
    copied = re.findall(r"^COPY (\w+/src) ", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert copied == [package.rpartition("/")[0] for package in PACKAGES]
    assert {f"!{folder}" for folder in copied} <= set(shown)


def test_the_image_has_the_versions_that_everything_is_tested_with() -> None:
    """Every pin is that of requirements/dev.txt, which has all of them."""
    assert _list_pinned("image").items() <= _list_pinned("dev").items()
