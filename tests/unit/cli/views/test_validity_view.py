from collections.abc import Callable

import pytest

from oku_cli.views.validity_view import build_validity
from oku_core.results.validity import Flag, Validity


@pytest.mark.parametrize("flag", list(Flag))
def test_a_flag_says_what_it_is_and_whom_it_concerns(flag: Flag, render: Callable[..., list[str]]) -> None:
    """The row has its name as in the JSON summary, the number of requests, and its meaning."""
    validity = Validity(flag=flag, detail="a worker's loop was up to 200 ms late", requests=12_000)
    (line,) = render(build_validity([validity]))
    words = f"! {flag.replace('_', ' ')} 12,000 requests: a worker's loop was up to 200 ms late"
    assert line.split() == words.split()


def test_a_long_detail_is_folded_under_itself(render: Callable[..., list[str]]) -> None:
    """None of it is cut."""
    detail = "latencies include the queueing of the worker " * 3
    lines = render(build_validity([Validity(flag=Flag.LOOP_LAG, detail=detail, requests=1)]), 66)
    assert " ".join(" ".join(lines).split()) == f"! loop lag 1 request: {detail}".strip()
    assert all(line.startswith(" " * len("! loop lag   ")) for line in lines[1:])


def test_the_share_of_the_requests_is_said(render: Callable[..., list[str]]) -> None:
    """It tells the reader whether the flag matters."""
    flag = Validity(flag=Flag.LOOP_LAG, detail="late", requests=1234, share=0.1234)
    assert "1,234 requests, 12.34 %: late" in "".join(render(build_validity([flag])))
