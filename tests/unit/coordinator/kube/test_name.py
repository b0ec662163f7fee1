from collections.abc import Sequence
from time import perf_counter

import pytest

from oku_coordinator.kube.name import ServerName, is_same, look_up
from oku_coordinator.kube.pods import Metadata, Pod, PodIp, Status


def build_pod(*ips: str) -> Pod:
    """A pod with these addresses, the first one its own before all."""
    return Pod(Metadata(name="s"), Status(ip=ips[0], ips=[PodIp(ip) for ip in ips]))


ONE, TWO = build_pod("10.0.0.1"), build_pod("10.0.0.2", "fd00::2")


@pytest.mark.parametrize(
    ("addresses", "pods"),
    [
        ({"10.0.0.1"}, [ONE]),
        ({"10.0.0.1", "10.0.0.2"}, [ONE, TWO]),
        ({"10.0.0.1", "fd00::2"}, [ONE, TWO]),
        ({"10.0.0.1", "10.0.0.2", "fd00::2"}, [ONE, TWO]),
    ],
    ids=["one", "two", "of-either-family", "of-both"],
)
def test_a_name_stands_for_pods_if_it_has_an_address_of_each(
    addresses: set[str], pods: Sequence[Pod]
) -> None:
    """A pod with two families may be behind it with either."""
    assert is_same(addresses, pods)


@pytest.mark.parametrize(
    ("addresses", "pods"),
    [
        ({"10.0.0.1"}, [ONE, TWO]),
        ({"10.0.0.1", "10.0.0.2"}, [ONE]),
        ({"10.0.0.9"}, [ONE]),
        (set(), [ONE]),
    ],
    ids=["one-is-missing", "one-has-gone", "another", "none"],
)
def test_a_name_that_lacks_a_pod_or_has_another_does_not_stand_for_them(
    addresses: set[str], pods: Sequence[Pod]
) -> None:
    """It is what DNS said before."""
    assert not is_same(addresses, pods)


async def test_every_replica_of_dns_has_to_agree() -> None:
    """One of two still has what was; that is met sooner or later."""
    answers = [{"10.0.0.1"}, {"10.0.0.1"}, {"10.0.0.9"}]

    async def ask(host: str) -> set[str]:
        assert host == "servers"
        return answers.pop(0)

    assert not await ServerName("servers", ask, settle_s=0).stands_for([ONE])
    answers += [{"10.0.0.1"}] * 4
    assert await ServerName("servers", ask, settle_s=0).stands_for([ONE])
    assert not answers


async def test_dns_is_not_asked_before_it_can_know() -> None:
    """It would remember that it did not."""
    asked_at = 0.0

    async def ask(host: str) -> set[str]:
        nonlocal asked_at
        asked_at = perf_counter()
        return set()

    started_at = perf_counter()
    await ServerName("servers", ask, settle_s=0.05).stands_for([ONE])
    assert asked_at - started_at >= 0.05


async def test_a_name_that_nobody_has_stands_for_nothing() -> None:
    """And a name of this machine for an address of it."""
    assert await look_up("nobody.invalid") == set()
    assert await look_up("localhost") & {"127.0.0.1", "::1"}
