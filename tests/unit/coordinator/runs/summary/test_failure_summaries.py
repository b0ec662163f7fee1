from oku_coordinator.runs.summary.part_summaries import summarize_failures
from oku_core.accounting.outcome import OUTCOMES, Outcome, ReasonCount
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url


def test_the_sample_of_a_reason_has_no_value_of_a_query() -> None:
    """It may be a token, and summaries go into reports and to Loki."""
    spec = Spec(urls=(Url("http://me:pw@h/items/{i}?token=abc&id={i}"),))
    count = ReasonCount(OUTCOMES.index(Outcome.CONNECT_ERROR), "refused", 2, 4, 9)
    (failure,) = summarize_failures(spec, [("", count)])
    assert failure.sample == "GET http://***@h/items/4?token=***&id=4"


def test_an_exception_has_a_traceback_and_no_request() -> None:
    """What user code asked for is not known; a reason without a traceback has none."""
    spec = Spec(engine=Engine.PYTHON)
    counts = [
        ("", ReasonCount(OUTCOMES.index(Outcome.EXCEPTION), reason, requests, 4, 9))
        for reason, requests in (("ValueError: 7", 3), ("KeyError: 'x'", 2))
    ]
    first, second = summarize_failures(spec, counts, tracebacks={"ValueError: 7": "File x.py, line 3"})
    assert (first.outcome, first.reason, first.traceback) == (
        Outcome.EXCEPTION, "ValueError: 7", "File x.py, line 3",
    )  # fmt: skip
    assert (first.sample, first.first_index, second.traceback) == ("", 4, "")
