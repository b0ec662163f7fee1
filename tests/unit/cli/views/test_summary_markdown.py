import msgspec
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.views.summary_markdown import build_markdown


def test_the_page_has_the_verdict_the_thresholds_the_figures_and_the_flags() -> None:
    """Each is one row of a table, or one line."""
    lines = build_markdown(build_threshold_run()).decode().splitlines()

    assert lines[0] == "## shop: failed"
    assert r"| ok \>= 99% | passed | 99.00 %; 1 of at most 1 against it |" in lines
    assert r"| p99 \< 1s | failed | 1.20 s; 2 of at most 1 against it |" in lines
    assert r"| rate \> 1/s over 1m | undecided | no 60 s in a row were seen live |" in lines
    assert "| ok | 99, 99.00 % |" in lines
    assert "| timeout | 1, 1.00 % |" in lines
    assert r"- resent: 3 requests: some \| more" in lines


def test_names_of_others_stay_text() -> None:
    """They cannot begin a link, a tag or a row."""
    summary = msgspec.structs.replace(build_threshold_run(), name="[a](b)|<b>\n# x")
    assert build_markdown(summary).decode().splitlines()[0] == r"## \[a\](b)\|\<b\> \# x: failed"
