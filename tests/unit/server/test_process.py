import resource

import pytest

from oku_server import process


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [((1024, 4096), (4096, 4096)), ((1024, -1), (1_048_576, -1)), ((1024, 2**30), (1_048_576, 2**30))],
)
def test_as_many_connections_as_permitted_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], wanted: tuple[int, int]
) -> None:
    """The soft limit of open files is raised to the hard one, within reason."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    process._allow_connections()
    assert asked == [wanted]


@pytest.mark.parametrize("limits", [(4096, 4096), (2**30, 2**30), (-1, -1)])
def test_a_limit_that_suffices_stays(monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]) -> None:
    """A limit is never lowered."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: pytest.fail("lowered"))
    process._allow_connections()
