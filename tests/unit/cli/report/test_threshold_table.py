import msgspec
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.report.threshold_table import build_thresholds


def test_a_report_has_a_row_for_each_threshold() -> None:
    """With its verdict, its limit and how far it is from being lost."""
    section = build_thresholds(build_threshold_run()) or ""

    assert section.count("<tr>") == 4
    assert (
        '<td class="good">passed</td><td class="number">99.00 %</td>'
        "<td>99.00 %; 1 of at most 1 against it</td>" in section
    )
    assert '<code>p99 &lt; 1s</code></th><td class="bad">failed</td><td class="number">1.00 s</td>' in section
    assert '<td class="caution">undecided</td>' in section


def test_a_report_of_a_run_without_thresholds_has_no_section_on_them() -> None:
    """Nothing is said of what was not asked for."""
    assert build_thresholds(msgspec.structs.replace(build_threshold_run(), thresholds=[])) is None
