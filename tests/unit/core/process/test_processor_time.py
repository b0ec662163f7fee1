"""How busy a process is."""

import time
from pathlib import Path

import pytest

from oku_core.process.processor_time import measure_busy_s


def test_busy_is_what_ran_and_what_waited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is in seconds; on a system that does not tell of waiting, waiting counts as nothing."""
    schedstat = tmp_path / "schedstat"
    monkeypatch.setattr(time, "process_time", lambda: 2.0)
    assert measure_busy_s(schedstat) == 2.0
    schedstat.write_text("1000000000 250000000 7\n")
    assert measure_busy_s(schedstat) == 2.25
    schedstat.write_text("")
    assert measure_busy_s(schedstat) == 2.0


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="this system does not tell")
def test_the_system_tells_of_waiting() -> None:
    """It does so in a form that is understood: waiting only grows."""
    first = measure_busy_s()
    assert 0 < time.process_time() <= first <= measure_busy_s()
