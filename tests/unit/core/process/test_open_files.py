import resource

import pytest

from oku_core.process import open_files

UNLIMITED = resource.RLIM_INFINITY


class Limits:
    """The limits of a process on a system that allows at most `most` open files."""

    def __init__(self, soft: int, hard: int, most: int) -> None:
        self.soft, self.hard, self.most = soft, hard, most
        self.is_set = False

    def get(self, _: int) -> tuple[int, int]:
        """Stand in for `resource.getrlimit`."""
        return self.soft, self.hard

    def set(self, _: int, limits: tuple[int, int]) -> None:
        """Stand in for `resource.setrlimit`."""
        if limits[0] > self.most:
            raise ValueError("not here")
        assert limits[1] == self.hard
        self.soft, self.is_set = limits[0], True


def set_up(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int = 1 << 62) -> Limits:
    """Replace the limits of this process."""
    limits = Limits(soft, hard, most)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    return limits


@pytest.mark.parametrize(
    ("soft", "hard", "allowed"),
    [(1024, 20_000, 20_000), (1024, UNLIMITED, 1 << 20), (1024, 1 << 30, 1 << 20), (256, 257, 257)],
)
def test_the_soft_limit_is_raised(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, allowed: int
) -> None:
    """It is raised to the hard limit, up to a maximum."""
    limits = set_up(monkeypatch, soft, hard)
    assert open_files.raise_open_files() == allowed
    assert limits.soft == allowed
    assert open_files.read_open_files() == allowed


@pytest.mark.parametrize(
    ("soft", "hard", "allowed"),
    [(4096, 4096, 4096), (1 << 30, 1 << 30, 1 << 20), (UNLIMITED, UNLIMITED, 1 << 20)],
)
def test_a_limit_that_suffices_stays(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, allowed: int
) -> None:
    """A limit is never lowered, and one above the maximum counts as the maximum."""
    limits = set_up(monkeypatch, soft, hard)
    assert open_files.raise_open_files() == allowed
    assert not limits.is_set


def test_a_system_may_allow_less_than_it_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then a lower limit is requested."""
    limits = set_up(monkeypatch, 256, UNLIMITED, most=300_000)
    assert open_files.raise_open_files() == 1 << 18
    assert limits.soft == 1 << 18
    assert "a limit of 1048576 open files is refused" in caplog.text


def test_a_limit_that_cannot_be_raised_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process starts all the same."""
    limits = set_up(monkeypatch, 1024, 4096, most=0)
    assert open_files.raise_open_files() == 1024
    assert not limits.is_set
    assert "a limit of 4096 open files is refused" in caplog.text
