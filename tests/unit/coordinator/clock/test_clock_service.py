import pytest

from oku_coordinator.clock.clock_service import find_clock_address


@pytest.mark.parametrize(
    ("listens_on", "host", "port", "told"),
    [
        ("0.0.0.0", None, None, ("box", 8700)),
        ("::", None, None, ("box", 8700)),
        ("10.0.0.7", None, None, ("10.0.0.7", 8700)),
        ("fe80::1%eth0", None, None, ("fe80::1", 8700)),
        ("127.0.0.1", None, None, None),
        ("::1", None, None, None),
        ("::", "oku-clock", None, ("oku-clock", 8700)),
        ("127.0.0.1", "oku-clock", 9000, ("oku-clock", 9000)),
        ("::", "", None, None),
    ],
)
def test_workers_are_told_where_they_reach_the_coordinator(
    listens_on: str, host: str | None, port: int | None, told: tuple[str, int] | None
) -> None:
    """What the user says, else what it listens on; on the loopback nobody elsewhere reaches it."""
    assert find_clock_address((listens_on, 8700), "box", host, port) == told
