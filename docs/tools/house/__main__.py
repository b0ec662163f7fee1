"""Prints the measures of the house with their goals and ceilings: `./task house`.

The product is counted as `docs.tools.house.measures`, `…shapes` and `…prose` document. How long
`./task test` and `.ci/run` take is not measured here, but read from `[times]` in `ceilings.toml`, where it is
recorded by hand, with the machine.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.tools.house.ceilings import CEILINGS, find_faults, lower, read_ceilings
from docs.tools.house.measures import MEASURES
from docs.tools.house.prose import list_matches
from docs.tools.house.tree import Tree, read_checkout, read_commit

_ROOT = Path(__file__).parents[3]
_WIDTH = 52


def main() -> int:
    """Print the table, or check or lower the ceilings; the exit code."""
    options = _parse()
    if options.commit:
        tree = read_commit(options.path or _ROOT, options.commit)
    else:
        tree = read_checkout(options.path or _ROOT)
    if options.english:
        sys.stdout.writelines(f"{line}\n" for line in list_matches(tree))
        return 0
    values = measure(tree)
    text = CEILINGS.read_text()
    if options.check:
        faults = [f"./task house: {fault}\n" for fault in find_faults(values, read_ceilings(text))]
        sys.stderr.writelines(faults)
        return int(bool(faults))
    if options.lower:
        CEILINGS.write_text(lower(text, values))
        return 0
    sys.stdout.writelines(f"{line}\n" for line in build_table(values, tomllib.loads(text)))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task house --", description="Measure the source tree.")
    parser.add_argument("path", nargs="?", type=Path, help="a checkout of Oku; this one by default")
    parser.add_argument("--commit", help="measure a commit of that repository")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="fail if a measure is above its ceiling")
    action.add_argument("--lower", action="store_true", help="lower the ceilings to the measures")
    action.add_argument(
        "--english", action="store_true", help="list the foreign turns of phrase, the worst files first"
    )
    return parser.parse_args()


def measure(tree: Tree) -> dict[str, float]:
    """Count everything in a tree, by the keys of the measures."""
    return {measure.key: measure.count(tree) for measure in MEASURES}


def build_table(values: Mapping[str, float], record: Mapping[str, object]) -> Iterator[str]:
    """Build the lines of the table.

    Args:
        values: by the keys of the measures.
        record: the content of the file of ceilings, with the times in a table of their own.
    """
    yield f"{'measure':{_WIDTH}}{'here':>10}{'goal':>10}{'ceiling':>10}"
    for each in MEASURES:
        ceiling = record.get(each.key, "")
        numbers = (values[each.key], each.goal, ceiling)
        yield f"{each.title:{_WIDTH}}" + "".join(
            f"{number:>10,}" if number else f"{'':>10}" for number in numbers
        )
    times = record.get("times", {})
    for title, (recorded, goal) in times.items() if isinstance(times, dict) else ():
        yield f"{title:{_WIDTH}}{recorded:>10}{goal:>10}"


if __name__ == "__main__":
    sys.exit(main())
