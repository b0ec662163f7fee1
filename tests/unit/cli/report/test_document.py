import re

import pytest

from oku_cli.report.document import ReadOut, build_document
from oku_core.accounting.outcome import OUTCOMES, Outcome


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_has_a_colour_in_charts_keys_and_bars(outcome: Outcome) -> None:
    """Without one its area is black and its key cannot be seen; it differs on light and dark ground."""
    document = build_document("run", [], ReadOut())
    colours = re.findall(rf"--{outcome}: (#[0-9a-f]{{6}});", document)
    assert len(set(colours)) == 2
    assert f".{outcome} {{ fill: var(--{outcome}); }}" in document
    assert f".key.{outcome}, .bar.{outcome} {{ background: var(--{outcome}); }}" in document
