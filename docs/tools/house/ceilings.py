"""The ceilings of the measures: one line each in `ceilings.toml`."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

CEILINGS = Path(__file__).parent / "ceilings.toml"


def read_ceilings(text: str) -> dict[str, float]:
    """Read the ceilings by the keys of their measures."""
    return {key: value for key, value in tomllib.loads(text).items() if isinstance(value, int | float)}


def find_faults(values: Mapping[str, float], ceilings: Mapping[str, float]) -> Iterator[str]:
    """Find what is above its ceiling, what has none, and ceilings of nothing; one line each."""
    for key, value in values.items():
        if key not in ceilings:
            yield f"{key} is {value:,} and has no ceiling"
        elif value > ceilings[key]:
            yield f"{key} is {value:,}, above its ceiling of {ceilings[key]:,}"
    yield from (f"{key} has a ceiling, but is not measured" for key in ceilings if key not in values)


def lower(text: str, values: Mapping[str, float]) -> str:
    """Lower the ceilings in the text of the file to these values; none is raised, and comments stay."""
    ceilings = read_ceilings(text)
    for key, value in values.items():
        if value < ceilings.get(key, value):
            text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, count=1, flags=re.MULTILINE)
    return text
