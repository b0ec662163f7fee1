import csv
import io
import json
from collections.abc import Callable

import msgspec
from tests.unit.cli.report.conftest import make_moment

from oku_cli.report.exports import CSV_COLUMNS, build_csv, build_hgrm_text, build_json, decode_latency
from oku_coordinator.dossier import Dossier
from oku_core.outcome import OUTCOMES

MakeDossier = Callable[..., Dossier]


def test_json_is_all_that_is_known(make_dossier: MakeDossier) -> None:
    """It can be read back; only secrets are not in it."""
    dossier = make_dossier(spec={"requests": 1000, "header": ["Authorization: secret"]})
    text = build_json(dossier)
    again = msgspec.json.decode(text, type=Dossier)
    assert again.moments == dossier.moments
    assert (again.summary, again.leases, again.slices) == (dossier.summary, dossier.leases, dossier.slices)
    assert b"secret" not in text
    assert json.loads(text)["spec"]["header"] == ["Authorization: ***"]


def test_csv_has_a_line_for_each_moment(make_dossier: MakeDossier) -> None:
    """Under the names of docs/metrics.md; what is not known is empty."""
    dossier = make_dossier(moments=[make_moment(1, [1000, 2000]), make_moment(2, [])])
    first, second = csv.DictReader(io.StringIO(build_csv(dossier)))
    assert tuple(first) == CSV_COLUMNS
    assert (first["at"], first["requests"], first["ok"], first["rate_rps"]) == (
        "1769965513.0",
        "2",
        "2",
        "2.0",
    )
    assert (first["p50_ms"], second["p50_ms"], second["requests"]) == ("1.0", "", "0")
    assert first["total"] == "1000"


def test_csv_names_every_outcome() -> None:
    """In their order."""
    assert [name for name in CSV_COLUMNS if name in set(OUTCOMES)] == list(OUTCOMES)


def test_hgrm_is_of_the_whole_run(make_dossier: MakeDossier) -> None:
    """In ms."""
    text = build_hgrm_text(make_dossier())
    assert "Total count    =         1000]" in text
    assert text.splitlines()[2].split()[0] == "1.000"


def test_latencies_have_their_exact_ends(make_dossier: MakeDossier) -> None:
    """Which the histogram alone does not know."""
    latency = decode_latency(make_dossier().summary)
    assert (latency.min_us, latency.max_us, latency.total) == (1000, 10_990, 1000)
