"""Checks the names of packages and modules: each of their words stands in the glossary or in docs/words.txt.

The glossary is the table under "The words" in docs/architecture.md; docs/words.txt lists the words of the
field, each with the part of it that it belongs to. A word of that list which no module uses is refused, too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "architecture.md"
WORDS = ROOT / "docs" / "words.txt"
SOURCES = (
    *(ROOT / part / "src" / f"oku_{part}" for part in ("core", "coordinator", "workers", "server", "cli")),
    ROOT / "scenarios" / "src" / "oku",
    ROOT / "charts" / "dashboards" / "oku_dashboards",
)

_SECTION = "## The words"


def find_faults() -> list[str]:
    """What is wrong with the names of modules and with the list of words, one line each."""
    modules = {path.relative_to(ROOT).as_posix(): words for path, words in list_names(SOURCES)}
    return check_names(modules, read_glossary(GLOSSARY.read_text()), WORDS.read_text().splitlines())


def list_names(sources: Sequence[Path]) -> Iterator[tuple[Path, Sequence[str]]]:
    """Every module and every package below the given ones, with the words of its name."""
    for source in sources:
        for path in sorted(source.rglob("*")):
            is_module = path.suffix == ".py" and not path.stem.startswith("__")
            if is_module or (path.is_dir() and (path / "__init__.py").exists()):
                yield path, path.stem.split("_")


def read_glossary(text: str) -> set[str]:
    """The words in the first column of the glossary."""
    _, _, section = text.partition(f"{_SECTION}\n")
    lines = section.partition("\n## ")[0].splitlines()
    terms = [line.split("|")[1] for line in lines if line.startswith("| ")]
    return {word.lower() for term in terms[1:] for word in re.findall(r"[A-Za-z]+", term)}


def check_names(modules: Mapping[str, Iterable[str]], glossary: set[str], lines: Sequence[str]) -> list[str]:
    """The faults of modules, given by path with the words of their names, and of the lines of the list."""
    listed = [line.split(maxsplit=1)[0] for line in lines if line.strip()]
    used = {word for words in modules.values() for word in words}
    known = glossary | set(listed)
    faults = [
        f"{path}: {word!r} stands neither in the glossary of docs/architecture.md nor in docs/words.txt"
        for path, words in modules.items()
        for word in words
        if not _find(word, known)
    ]
    faults += [
        f"docs/words.txt: {word!r} is used by no module"
        for word in listed
        if not any(_find(name, {word}) for name in used)
    ]
    faults += [
        f"docs/words.txt: {word!r} stands in the glossary already" for word in listed if word in glossary
    ]
    faults += [
        f"docs/words.txt: {line!r} does not say which part of the field its word belongs to"
        for line in lines
        if len(line.split(maxsplit=1)) < 2
    ]
    if listed != sorted(set(listed)):
        faults.append("docs/words.txt: the words are not in alphabetical order, or one stands there twice")
    return faults


def _find(word: str, known: set[str]) -> bool:
    """Whether a word is known, as it is or as the plural of one that is."""
    singulars = {word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)}
    return bool(singulars & known)
