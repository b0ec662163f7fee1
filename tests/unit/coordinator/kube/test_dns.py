import asyncio
import socket
from typing import Any

import pytest

from oku_coordinator.kube import dns as dns_module
from oku_coordinator.kube.dns import LOOKUPS, NAMED_WITHIN_S, ServerDns, is_same, look_up
from oku_coordinator.kube.pods import Metadata, Pod, PodIp, Status


def build_pod(*ips: str) -> Pod:
    """A pod with these addresses, the first one its own before all."""
    return Pod(Metadata(name="s"), Status(ip=ips[0], ips=[PodIp(ip) for ip in ips]))


ONE, TWO = build_pod("10.0.0.1"), build_pod("10.0.0.2", "fd00::2")


class Dns:
    """Answers from a list, and then always the last one of it; a time that is set by hand."""

    def __init__(self, *answers: set[str]) -> None:
        self.answers = list(answers)
        self.now = 1000.0
        self.calls: list[str] = []
        self.name = ServerDns("servers", self._look_up, lambda: self.now, self._sleep)

    async def look(self, *pods: Pod, after_s: float = 0.0) -> str:
        """What keeps the name from standing for these pods, some time later."""
        self.now += after_s
        return await self.name.find_obstacle(pods)

    async def _look_up(self, host: str) -> set[str]:
        self.calls.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def _sleep(self, duration_s: float) -> None:
        assert duration_s > 0
        self.calls.append("sleep")


def test_a_name_stands_for_pods_if_it_has_an_address_of_each_and_no_other() -> None:
    """A pod with two families may be behind it with either; the rest is what DNS said before."""
    one, two = ["10.0.0.1"], ["10.0.0.1", "10.0.0.2"]
    both = [ONE, TWO]
    right = [(one, [ONE]), (two, both), ([*one, "fd00::2"], both), ([*two, "fd00::2"], both)]
    wrong = [(one, both), (two, [ONE]), (["10.0.0.9"], [ONE]), ([], [ONE])]
    found = [is_same(set(addresses), [pod.ips for pod in pods]) for addresses, pods in right + wrong]
    assert found == [True] * len(right) + [False] * len(wrong)


async def test_every_lookup_has_to_agree() -> None:
    """One of the replicas of DNS still has what was."""
    dns = Dns(*[{"10.0.0.1"}] * (LOOKUPS - 1), {"10.0.0.9", "10.0.0.1"}, {"10.0.0.1"})
    assert await dns.look(ONE) == "DNS still resolves servers to 10.0.0.1, 10.0.0.9"
    assert await dns.look(ONE) == ""
    assert dns.calls == ["sleep", *["servers"] * LOOKUPS] * 2


async def test_dns_is_not_asked_again_at_once_when_it_is_behind() -> None:
    """The first lookup that differs is enough."""
    dns = Dns(set())
    assert await dns.look(ONE) == "DNS still resolves servers to no address"
    assert dns.calls == ["sleep", "servers"]


async def test_after_a_minute_a_name_is_taken_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """A Service with an address of its own always has that; it is not waited for again."""
    dns = Dns({"10.96.0.7"})
    assert await dns.look(ONE)
    assert await dns.look(ONE, after_s=NAMED_WITHIN_S - 1)
    assert not await dns.look(ONE, after_s=1)
    assert not await dns.look(ONE, TWO)
    assert caplog.messages == [
        "DNS resolves servers to 10.96.0.7, but the delay servers are 10.0.0.1; runs start anyway"
    ]


async def test_a_name_that_was_right_is_waited_for_anew() -> None:
    """What was taken once as it is may later be an address that has gone."""
    dns = Dns({"10.0.0.9"})
    assert await dns.look(ONE)
    assert not await dns.look(ONE, after_s=NAMED_WITHIN_S)
    dns.answers = [{"10.0.0.1"}]
    assert not await dns.look(ONE)
    dns.answers = [{"10.0.0.9"}]
    assert await dns.look(ONE)


async def test_other_pods_have_a_minute_of_their_own() -> None:
    """DNS cannot have known them before."""
    dns = Dns({"10.0.0.9"})
    assert await dns.look(ONE)
    assert await dns.look(TWO, after_s=NAMED_WITHIN_S)
    assert not await dns.look(TWO, after_s=NAMED_WITHIN_S)


async def test_dns_that_hangs_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scaler has other things to do."""

    async def hang(_: str) -> set[str]:
        await asyncio.Event().wait()
        return set()

    async def sleep(_: float) -> None:
        pass

    monkeypatch.setattr(dns_module, "PATIENCE_S", 0.01)
    name = ServerDns("servers", hang, sleep=sleep)
    assert await name.find_obstacle([ONE]) == "DNS still resolves servers to no address"


async def test_a_name_is_looked_up_in_both_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """The port makes no difference to a lookup."""

    def resolve(host: str, port: None, *_: object) -> list[tuple[Any, ...]]:
        assert (host, port) == ("servers", None)
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fd00::1", 0, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert await look_up("servers") == {"fd00::1", "10.0.0.1"}


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label")])
async def test_a_name_that_nobody_knows_has_no_addresses(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A text that cannot be a name has none either."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert await look_up("servers") == set()
