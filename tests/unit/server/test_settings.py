import pytest

from oku_server.behaviour.fault import FaultRates
from oku_server.behaviour.response_body import DEFAULT_BODY
from oku_server.settings import ServerSettings


def test_an_empty_body_cannot_be_truncated() -> None:
    """A fault that could never show is refused."""
    with pytest.raises(ValueError, match=r"^an empty body cannot be truncated$"):
        ServerSettings(body=b"", faults=FaultRates(truncate=0.1))


def test_a_server_behaves_well_and_keeps_to_this_machine_unless_told_otherwise() -> None:
    """The defaults: loopback, one process, no delay, no fault, counts in memory."""
    settings = ServerSettings()
    assert (settings.host, settings.port, settings.processes) == ("127.0.0.1", 8080, 1)
    assert (settings.delay, settings.delay.mean_s, settings.seed) == ("0s", 0, 0)
    assert (settings.body, settings.faults) == (DEFAULT_BODY, FaultRates())
    assert settings.counts_dir is None
    assert settings.ready_file is None
