import sqlite3

import pytest

from oku_coordinator.assembly import Assembly, is_fatal
from oku_coordinator.settings import CoordinatorSettings
from oku_core.errors import UserError


def test_a_ledger_has_one_coordinator(parts: Assembly, coordinator_settings: CoordinatorSettings) -> None:
    """A second one waits for a while and is refused then."""
    with pytest.raises(UserError, match="another coordinator holds this ledger"):
        Assembly(coordinator_settings, lock_wait_s=0.0)
    assert parts.ledger.runs.fetch_page() == []


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (sqlite3.DatabaseError("database disk image is malformed"), True),
        (sqlite3.OperationalError("database or disk is full"), False),
        (RuntimeError("unforeseen"), False),
    ],
)
def test_only_a_broken_ledger_is_fatal(error: Exception, *, ends: bool) -> None:
    """It does not pass by itself; a full disk may be emptied."""
    assert is_fatal(error) is ends
