"""Breaks the code on purpose, one way after the other, and says in which seed the simulation notices.

Each way is a patch in `mutants`, whose first line says what is wrong. It is applied to a copy of the code.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
MUTANTS = Path(__file__).parent / "mutants"
_SOURCES = ("core/src", "coordinator/src", "workers/src")
_FOUND = re.compile(r"^seed (\d+) breaks a law: (.*)$", re.MULTILINE)


class Finding(NamedTuple):
    """What the simulation says of a mutant.

    Attributes:
        seed: the first seed that breaks a law; None if none of them does.
        law: what is broken.
        seeds: how many seeds were played.
    """

    seed: int | None
    law: str
    seeds: int


def list_mutants() -> list[str]:
    """The names of all mutants."""
    return sorted(patch.stem for patch in MUTANTS.glob("*.patch"))


def describe(mutant: str) -> str:
    """What is wrong with a mutant."""
    return (MUTANTS / f"{mutant}.patch").read_text().splitlines()[0]


@contextmanager
def mutated(mutant: str) -> Iterator[Path]:
    """A copy of the code with a mutant's patch.

    Raises:
        RuntimeError: the patch does not fit the code any more.
    """
    with tempfile.TemporaryDirectory(prefix="oku-mutant-") as name:
        folder = Path(name)
        for source in (*_SOURCES, "tests/simulation", "tests/kit"):
            shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            ["git", "apply", str(MUTANTS / f"{mutant}.patch")],
            cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"GIT_DIR": "/nowhere"},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{mutant}: its patch does not fit the code: {done.stderr.strip()}")
        yield folder


def find(mutant: str, seeds: int) -> Finding:
    """Play seeds with a mutant until one breaks a law."""
    with mutated(mutant) as folder:
        path = os.pathsep.join(str(folder / source) for source in (*_SOURCES, "."))
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--seeds", str(seeds)],
            cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
    said = _FOUND.search(done.stdout)
    if said is None and done.returncode:
        raise RuntimeError(f"{mutant}: the simulation itself fails: {done.stderr[-2000:]}")
    played = re.search(r"^([\d,]+) seeds", done.stdout, re.MULTILINE)
    count = int(played[1].replace(",", "")) if played else 0
    return Finding(int(said[1]) if said else None, said[2] if said else "", count)


def main() -> int:
    """Look for all mutants, or for those that the command line names; 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="./task simulate:mutants --", description=__doc__)
    parser.add_argument("mutants", nargs="*", help="their names (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=1000, help="how many seeds to play at most (default 1000)"
    )
    arguments = parser.parse_args()
    missed = 0
    for mutant in arguments.mutants or list_mutants():
        finding = find(mutant, arguments.seeds)
        missed += finding.seed is None
        result = "NOT FOUND" if finding.seed is None else f"seed {finding.seed}: {finding.law}"
        sys.stdout.write(f"{mutant}: {describe(mutant)}\n    {result}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
