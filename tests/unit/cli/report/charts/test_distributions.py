from tests.unit.cli.report.charts.distributions import make


def test_its_id_can_be_a_css_class() -> None:
    """A name may have a space."""
    assert make([1], "response time").id == "response-time"
