from pathlib import Path

import pytest

from oku_core.broker.socket_url import build_socket_url, find_socket_path, open_unix_socket
from oku_core.errors import UserError


def test_a_path_is_found_in_its_url() -> None:
    """Whatever a folder is called: Jenkins makes job@2 and feature%2Fx."""
    for name in ("a", "job@2", "feature%2Fx", "c#", "what?", "a b", "a;b&c", 'q"', "ü💥", "\udcff", "\n"):
        path = Path("/", name, "s")
        assert find_socket_path(build_socket_url(path)) == path
    assert find_socket_path("redis+socket:///a/s") is None


def test_a_path_that_no_socket_can_have_is_refused() -> None:
    """In one line, with the option."""
    for url in ("unix://", "unix://relative", f"unix:///{'x' * 120}", "unix:///a%00b"):
        with pytest.raises(
            UserError, match=r"^--broker-url: .* is not an absolute path of at most 103 bytes$"
        ):
            find_socket_path(url)


def test_a_socket_replaces_what_a_killed_process_left_but_no_living_one(tmp_path: Path) -> None:
    """Only its user can connect."""
    path = tmp_path / "s"
    listening = open_unix_socket(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UserError, match="another coordinator listens at"):
        open_unix_socket(path)
    listening.close()
    open_unix_socket(path).close()
    with pytest.raises(UserError, match=r"^--broker-url: .*/none/s: No such file or directory$"):
        open_unix_socket(tmp_path / "none" / "s")
