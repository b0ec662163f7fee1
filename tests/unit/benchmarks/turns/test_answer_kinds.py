import json
import re

import pytest

from oku_benchmarks.turns.answer_kinds import ANSWER_KINDS, HTTP2_KINDS, LENGTHS, LOCATIONS, build_choices


@pytest.mark.parametrize("kind", [*ANSWER_KINDS, *HTTP2_KINDS])
def test_each_kind_of_answers_has_its_location(kind: str) -> None:
    """What has none would be answered as the one that is always the same."""
    for path in {**ANSWER_KINDS, **HTTP2_KINDS}[kind].paths:
        assert f"location {path.removesuffix('{i}')} {{" in LOCATIONS


def test_bodies_of_json_have_the_lengths_that_they_are_to_have() -> None:
    """Each of them is the inside of a list."""
    bodies = re.findall(r"'(.*)';", build_choices())

    assert [len(body) for body in bodies] == list(LENGTHS)
    assert all(json.loads(f"[{body}]") for body in bodies)


def test_the_shares_of_the_choices_are_whole() -> None:
    """A share in nginx has at most two places behind the point, and the last choice gets what is left."""
    shares = [float(share) for share in re.findall(r"([\d.]+)%", build_choices())]

    assert len(shares) == len(LENGTHS) - 1
    assert all(round(share, 2) == share for share in shares)
    assert sum(shares) < 100
