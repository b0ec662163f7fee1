"""What the reference pages say, held against the commands and the sources."""

import re
import time
from contextlib import closing
from pathlib import Path

import click
import yaml
from docs.tools.command_reference import build_commands, build_variables, load_commands
from docs.tools.spec_reference import build_fields

from oku_cli.exit_code import ExitCode
from oku_coordinator.ledger import Ledger
from oku_coordinator.telemetry.prometheus.metrics import LedgerCollector, Metrics
from oku_core.results.lines import LineKind
from oku_core.spec.fields import FIELDS
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag

ROOT = Path(__file__).parents[3]
INTERNAL = {"OKU_BROKER_PASSWORD", "OKU_COMMAND", "OKU_DEBUGGABLE", "OKU_IN_CONTAINER", "OKU_NO_EXTENSIONS"}
"""A part of the broker's URL, which the chart sets; how hints call the command, which `./task` sets; where it
runs, which the image sets; and two that docs/environment.md describes: debuggers may attach, and nothing
compiled is used."""


def test_the_reference_has_every_option_key_and_variable() -> None:
    """Each is under its command, among the shared ones, or a key of a spec."""
    page = build_commands() + build_fields()
    for command in load_commands().values():
        for option in (each for each in command.params if isinstance(each, click.Option)):
            assert all(f"`{name}" in page for name in option.opts), option.opts
    # The reference has every key of a spec. Each has a row with its flags.
    rows = [row for row in build_fields().splitlines() if row.startswith("| `")]
    assert [re.findall(r"`(.*?)`", row)[0] for row in rows] == [
        field.key
        for group in dict.fromkeys(f.group for f in FIELDS)
        for field in FIELDS
        if field.group == group
    ]
    # The reference has every variable that the sources name. None can be set that nobody is told of.
    sources = [
        path.read_text()
        for part in ("core", "coordinator", "workers", "server", "cli")
        for path in (ROOT / part / "src").rglob("*.py")
    ]
    named = {name for text in sources for name in re.findall(r'"(OKU_[A-Z_]*[A-Z])"', text)}
    told = set(re.findall(r"^\| `(OKU_\w+)`", build_variables(), re.MULTILINE))
    assert named - INTERNAL == told & named
    assert told


def test_the_page_on_figures_has_every_metric_and_every_kind_of_line(tmp_path: Path) -> None:
    """A metric stands in a row of the table, a kind of line at the beginning of a paragraph."""
    page = (ROOT / "docs" / "metrics.md").read_text()
    metrics = Metrics()
    with closing(Ledger(tmp_path / "ledger.sqlite3")) as ledger:
        metrics.show_ledger(LedgerCollector(ledger, tmp_path, time.time))
        exposed = set(re.findall(r"^# HELP (\S+)", metrics.expose()[0].decode(), re.MULTILINE))
    section = page.partition("\n## Prometheus\n")[2].partition("\n## ")[0]
    assert list_terms(section) == {name for name in exposed if not name.endswith("_created")}
    assert set(re.findall(r"^\*\*`(\w+)`\*\*: ", page, re.MULTILINE)) == set(LineKind)


def test_pages_have_every_exit_code_figure_and_alert() -> None:
    """Each code has a row, in their order."""
    page = (ROOT / "docs" / "scripts.md").read_text()
    assert [int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)] == list(ExitCode)
    # The page on figures has every field and flag of a summary.
    page = (ROOT / "docs" / "metrics.md").read_text()
    _, _, rest = page.partition("\n## The summary\n")
    fields, _, flags = rest.partition("\n## Flags of validity\n")
    assert list_terms(fields) == set(Summary.__struct_fields__)
    assert list_terms(flags.partition("\n## ")[0]) == set(Flag)
    # The page on operations has every alert of the chart.
    alerts = yaml.safe_load((ROOT / "charts" / "oku" / "files" / "alerts.yaml").read_text())
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition("\n### Alerts\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)
    assert rows == [(alert["alert"], alert["labels"]["severity"]) for alert in alerts]


def list_terms(section: str) -> set[str]:
    """What the first column of the tables in a section names."""
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {term for cell in cells for term in re.findall(r"`(\w+)", cell)}
