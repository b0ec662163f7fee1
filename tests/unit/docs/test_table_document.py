import json
from pathlib import Path
from typing import Any

import msgspec
from docs.tools.openapi import build_openapi
from jsonschema import Draft202012Validator
from tests.kit.runs.summaries import build_summary, make_inner, make_phase, make_target

from oku_core.accounting.outcome import Outcome
from oku_core.summary.request_summary import FailureSummary
from oku_core.tables.summary_tables import list_tables
from oku_core.tables.table import Quantity

DOCUMENT: dict[str, Any] = json.loads(build_openapi())


def test_the_tables_of_a_run_are_as_the_document_says() -> None:
    """The page names each of them, and all units."""
    failure = FailureSummary(outcome=Outcome.TIMEOUT, reason="slow", requests=1, first_index=0)
    summary = build_summary(
        targets=[make_target()], phases=[make_phase()], failures=[failure],
        inner_requests=[make_inner(failures=[failure])],
    )  # fmt: skip
    tables = json.loads(msgspec.json.encode(list_tables(summary)))
    schema = {"$ref": "#/components/schemas/Table", "components": DOCUMENT["components"]}
    faults = [fault.message for table in tables for fault in Draft202012Validator(schema).iter_errors(table)]
    assert faults == []
    page = (Path(__file__).parents[3] / "docs/api.md").read_text()
    [told] = (line for line in page.splitlines() if line.startswith("| Table |"))
    names = [*(table["name"] for table in tables), *Quantity]
    assert [name for name in names if f"`{name}`" not in told] == []
