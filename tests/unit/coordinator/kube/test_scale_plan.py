import pytest

from oku_coordinator.kube.scale_plan import (
    IdleClock,
    check_bounds,
    choose_servers,
    choose_workers,
)
from oku_coordinator.settings import KubeSettings
from oku_core.errors import UserError
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

SETTINGS = KubeSettings(
    namespace="oku", workers="w", servers="s", default_workers=3, max_workers=8, max_servers=4
)
OWN_TARGET = (Url("http://h/"),)


@pytest.mark.parametrize(("workers", "pods"), [(None, 3), (1, 1), (8, 8), (9, 8)])
def test_a_run_gets_the_workers_that_it_wants(workers: int | None, pods: int) -> None:
    """The bounds apply, which may have become narrower since it was submitted."""
    assert choose_workers(Spec(workers=workers), SETTINGS) == pods


@pytest.mark.parametrize(
    ("servers", "least", "current", "pods"),
    [
        (None, 0, 0, 1),
        (None, 0, 3, 3),
        (None, 2, 1, 2),
        (2, 0, 0, 2),
        (2, 0, 4, 2),
        (9, 0, 1, 4),
        (1, 2, 4, 2),
    ],
)
def test_a_run_gets_the_delay_servers_that_it_wants(
    servers: int | None, least: int, current: int, pods: int
) -> None:
    """A run that asks for none takes those that exist, and at least one."""
    settings = KubeSettings(namespace="oku", workers="w", servers="s", min_servers=least, max_servers=4)
    assert choose_servers(Spec(servers=servers), settings, current) == pods


def test_a_run_with_a_target_of_its_own_leaves_delay_servers_alone() -> None:
    """It does not use them."""
    assert choose_servers(Spec(urls=OWN_TARGET, servers=3), SETTINGS, 2) == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Spec(workers=9), "workers: 9 is more than the 8 that this coordinator may scale to"),
        (Spec(servers=5), "servers: 5 is more than the 4 that this coordinator may scale to"),
    ],
)
def test_more_than_there_may_be_is_refused(spec: Spec, message: str) -> None:
    """The run does not begin with fewer instead."""
    with pytest.raises(UserError, match=f"^{message}$"):
        check_bounds(spec, SETTINGS)


@pytest.mark.parametrize("spec", [Spec(), Spec(workers=8, servers=4), Spec(urls=OWN_TARGET, servers=9)])
def test_what_is_within_bounds_is_taken(spec: Spec) -> None:
    """What has no meaning for a run is not looked at."""
    check_bounds(spec, SETTINGS)


def test_delay_servers_cannot_be_wanted_where_none_are() -> None:
    """The target is somebody else's then."""
    with pytest.raises(UserError, match=r"^servers: this coordinator has no delay servers to scale$"):
        check_bounds(Spec(servers=1), KubeSettings(namespace="oku", workers="w"))


def test_what_is_idle_is_told_once() -> None:
    """It is due once after a while without a run, and again only after another run."""
    clock = IdleClock(60.0)
    assert not clock.is_due(100.0)
    assert not clock.is_due(159.0)
    assert clock.is_due(160.0)
    assert clock.is_due(161.0)  # what was to be done has failed
    clock.record_done()
    assert not clock.is_due(1000.0)
    clock.record_run()
    assert not clock.is_due(2000.0)
    assert clock.is_due(2060.0)
