"""Measures changed answers by an extension that checks its memory, and in Python: EXTENSION SEED COUNT.

Run by test_speedups.py in a process of its own, which ends with an error at the first byte that is read
outside of an answer, and at the first answer that has two measures.
"""

import importlib.util
import sys

from tests.kit.faults.mutation import mutate_one_of
from tests.kit.servers.responses import VALID

from oku_workers.engines.httptools import pattern_measure, response_pattern, speedups

SAMPLES = tuple(row.content for row in VALID.values() if row.method == "GET")


def load(path: str) -> None:
    """Have the extension at a path build measures."""
    spec = importlib.util.spec_from_file_location("_speedups", path)
    assert spec is not None
    assert spec.loader is not None
    speedups._speedups = importlib.util.module_from_spec(spec)  # noqa: SLF001
    spec.loader.exec_module(speedups._speedups)  # noqa: SLF001


def main() -> None:
    """Compare them, whatever was the answer that a pattern is of."""
    extension, seed, count = sys.argv[1:]
    load(extension)
    measures = []
    for build in (pattern_measure.build_measure, speedups.build_compiled_measure):
        speedups.build_measure = build
        patterns = [pattern for each in SAMPLES if (pattern := response_pattern.learn_pattern(each))]
        measures.append([pattern.measure for pattern in patterns])
    recognised = 0
    for number in range(int(count)):
        answer = mutate_one_of(SAMPLES, f"{seed} {number}")
        for in_python, compiled in zip(*measures, strict=True):
            size = compiled(answer)
            assert size == in_python(answer), answer
            recognised += size >= 0
    sys.stdout.write(f"{len(measures[0])} {recognised}\n")


if __name__ == "__main__":
    main()
