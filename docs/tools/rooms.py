"""The rooms in docs/rooms.md: who may import whom, by .importlinter; and that none is left out."""

import re
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from pathlib import Path

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs" / "rooms.md"
PACKAGES = (
    *(_ROOT / part / "src" / f"oku_{part}" for part in ("core", "coordinator", "workers", "server", "cli")),
    _ROOT / "scenarios" / "src" / "oku",
    _ROOT / "charts" / "dashboards" / "oku_dashboards",
)

_BETWEEN = "between the packages"


def build_rooms_table(contracts: str) -> str:
    """A row for each package with a contract: floors from the top down, rooms of one floor side by side.

    Packages within packages are left out: `.importlinter` has their floors.
    """
    parser = ConfigParser()
    parser.read_string(contracts)
    sections = [dict(parser[name]) for name in parser.sections() if parser[name].get("type") == "layers"]
    rows = [row for section in sections for row in _build_rows(section)]
    return "\n".join(["| | each floor imports only from those to its right |", "| --- | --- |", *rows])


def _build_rows(section: dict[str, str]) -> Iterator[str]:
    floors = [re.split(r"\s*[|:]\s*", line) for line in section["layers"].split("\n") if line.strip()]
    modules = [[room.strip("() ") for room in floor] for floor in floors]
    containers = section.get("containers", "").split()
    packages = {name.split(".")[0] for floor in modules for name in floor}
    if not containers and len(packages) == 1:
        containers = [packages.pop()]
        modules = [[name.removeprefix(f"{containers[0]}.") for name in floor] for floor in modules]
    text = " → ".join(" · ".join(f"`{name}`" for name in floor) for floor in modules)
    for title in [f"`{name}`" for name in containers if "." not in name] if containers else [_BETWEEN]:
        yield f"| {title} | {text} |"


def check_rooms(text: str, packages: Sequence[Path]) -> Iterator[str]:
    """Where the tables headed "room of `PACKAGE`" differ from the folders of these packages."""
    for package in packages:
        _, header, rest = text.partition(f"| room of `{package.name}` | holds |\n| --- | --- |\n")
        told = re.findall(r"^\| `([\w.]+)` \|", rest.partition("\n\n")[0], re.MULTILINE)
        folders = (path.parent.relative_to(package) for path in package.glob("*/**/__init__.py"))
        rooms = {".".join(folder.parts) for folder in folders}
        if header and set(told) != rooms:
            differing = ", ".join(sorted(rooms.symmetric_difference(told)))
            yield f"docs/rooms.md: the rooms of {package.name} differ from its folders: {differing}"
