from oku_coordinator.runs.printed_lines import PrintedLines
from oku_core.messaging.printed import LONGEST_PRINTED_LINE, Printed, PrintedLine, PrintedSummary


def test_first_lines_of_all_workers_are_kept_once() -> None:
    """Reports are repeated, come late, and have all lines of their process; later ones are counted alone."""
    printed = PrintedLines()
    assert printed.find("r1") is None
    texts = [f"line {number}" for number in range(20)]
    for count in (2, 2, 1, 3):
        printed.record("w1", "i1", Printed(run="r1", lines=texts[:count], count=count, file="/a"))
    printed.record("w2", "i2", Printed(run="r1", lines=texts, count=500, file="/b"))
    printed.record("w1", "i3", Printed(run="r1", lines=["again"], count=1))
    found = printed.find("r1")
    assert found is not None
    assert (found.count, found.files, len(found.lines)) == (504, {"w1": "/a", "w2": "/b"}, 20)
    assert [line.worker for line in found.lines] == ["w1"] * 3 + ["w2"] * 17
    assert [line.text for line in found.lines] == [*texts[:3], *texts[:17]]
    for number in range(30):
        # Old runs are forgotten.
        printed.record("w1", "i1", Printed(run=f"n{number}", lines=["a"], count=1))
    assert printed.find("r1") is None
    assert printed.find("n29") == PrintedSummary(
        lines=[PrintedLine(worker="w1", text="a")], count=1, files={}
    )


def test_a_report_that_cannot_be_is_refused() -> None:
    """It has bounds, for user code may write what it likes."""
    for fields, fault in (
        ({"lines": ["a"], "count": 1, "file": "/x"}, None),
        ({"lines": ["a", "b"], "count": 1}, "user code has printed 1 lines, of which 2 are reported"),
        ({"lines": ["a"] * 21, "count": 21}, "user code has printed 21 lines, of which 21 are reported"),
        (
            {"lines": ["a" * (LONGEST_PRINTED_LINE + 1)], "count": 1},
            "a printed line, or the path of its file",
        ),
        ({"lines": [], "count": 0, "file": "x" * 1_001}, "a printed line, or the path of"),
        ({"lines": ["a\x1b"], "count": 1}, "a printed line is not one line"),
    ):
        found = Printed(run="r1", **fields).find_fault()  # type: ignore[arg-type]
        assert (found or "").startswith(fault or "")
        assert (found is None) is (fault is None)
