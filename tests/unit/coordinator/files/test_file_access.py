import pytest

from oku_coordinator.files.file_access import find_files_address


@pytest.mark.parametrize(
    ("listening", "host", "port", "url"),
    [
        (("127.0.0.1", 8701), None, None, "http://127.0.0.1:8701"),
        (("0.0.0.0", 8701), None, None, "http://machine:8701"),  # nothing listens
        (("::", 8701), None, None, "http://machine:8701"),
        (("::1", 8701), None, None, "http://[::1]:8701"),
        (("::", 8701), "oku-files", None, "http://oku-files:8701"),
        (("::", 8701), "oku-files", 80, "http://oku-files:80"),
    ],
)
def test_workers_are_told_what_they_can_reach(
    listening: tuple[str, int], host: str | None, port: int | None, url: str
) -> None:
    """What the operator says comes first; then the address, unless it is all of them."""
    assert find_files_address(listening, "machine", host, port).url == url
