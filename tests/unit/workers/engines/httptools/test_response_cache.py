from hypothesis import given
from hypothesis import strategies as st

from oku_workers.engines.httptools.response_cache import LONGEST_BYTES, MOST, ResponseCache

RESPONSES = st.tuples(st.integers(0, 2 * MOST), st.sampled_from([1, LONGEST_BYTES, LONGEST_BYTES + 1]))


@given(st.lists(RESPONSES, max_size=3 * MOST))
def test_what_is_known_was_told_before(told: list[tuple[int, int]]) -> None:
    """This holds whatever was forgotten meanwhile, and there is never too much of it."""
    known = ResponseCache()
    for number, length in told:
        response = b"%d " % number + b"x" * (length - len(b"%d " % number))
        parsed = (0, 200, number, "")
        known.add(response, parsed)
        assert known.find(response) == (parsed if len(response) <= LONGEST_BYTES else None)
    assert known.count <= MOST


def test_it_is_quick_again_after_it_was_full() -> None:
    """A target with more answers than fit is no reason to give up on those that come often."""
    known = ResponseCache()
    for number in range(MOST + 1):
        known.add(b"%d" % number, (0, 200, number, ""))
    assert known.find(b"%d" % MOST) == (0, 200, MOST, "")
    assert known.find(b"0") is None
    known.add(b"0", (1, 404, 0, "status 404"))
    assert known.find(b"0") == (1, 404, 0, "status 404")
