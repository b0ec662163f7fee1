"""Measures changed answers by an extension that checks its memory, and in Python: EXTENSION SEED COUNT.

Run by test_speedups.py in a process of its own, which ends with an error at the first byte that is read
outside of an answer, and at the first answer that has two measures.
"""

import sys

from tests.fuzz.sanitized import load
from tests.kit.faults.mutation import mutate_one_of
from tests.kit.servers.responses import VALID

SAMPLES = tuple(row.content for row in VALID.values() if row.method == "GET")


def compare(seed: str, count: int) -> tuple[int, int]:
    """The number of patterns, and how many answers they have recognised."""
    from oku_workers.engines.httptools import body_size, response_pattern

    measures = []
    for build in (body_size.PythonShape, body_size.build_compiled_shape):
        body_size.build_shape = build
        patterns = [pattern for each in SAMPLES if (pattern := response_pattern.learn_pattern(each))]
        measures.append([pattern.measure for pattern in patterns])
    recognised = 0
    for number in range(count):
        answer = mutate_one_of(SAMPLES, f"{seed} {number}")
        for in_python, compiled in zip(*measures, strict=True):
            size = compiled(answer)
            assert size == in_python(answer), answer
            recognised += size >= 0
    return len(measures[0]), recognised


if __name__ == "__main__":
    extension, seed, count = sys.argv[1:]
    load(extension)
    sys.stdout.write("{} {}\n".format(*compare(seed, int(count))))
