from typing import Any

import pytest

from oku_core.messaging.server_requests import ask_servers
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.header import Header
from oku_core.spec.values.url import Url

SERVERS = ["http://s1:1/", "http://s2:2"]


def test_own_servers_are_asked_by_address_and_told_the_run() -> None:
    """Request i goes to `/i` of the servers in turn; the rest of the spec is as it was."""
    spec = ask_servers(Spec(requests=100, headers=(Header("A: b"),), concurrency=7), "r1", SERVERS)
    assert spec.urls == ("http://s1:1/{i}", "http://s2:2/{i}")
    assert spec.headers == ("A: b", "Oku-Run: r1")
    assert (spec.requests, spec.concurrency) == (100, 7)


def test_targets_say_what_they_ask_of_own_servers() -> None:
    """Their URLs come behind the addresses."""
    targets = (Target(name="a", url="/a/{i}"),)
    assert ask_servers(Spec(targets=targets), "r1", SERVERS).urls == ("http://s1:1", "http://s2:2")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, []),
        ({"delay": "0..3s", "seed": 7}, ["Oku-Delay: 0..3s", "Oku-Seed: 7"]),
        ({"delay": "0s"}, ["Oku-Delay: 0s"]),
        ({"seed": 0}, ["Oku-Seed: 0"]),
    ],
)
def test_own_servers_are_told_the_delay_and_the_seed_that_a_run_asks_for(
    asked: dict[str, Any], said: list[str]
) -> None:
    """A run that asks for none has what the servers were started with."""
    assert ask_servers(Spec(**asked), "r1", SERVERS).headers == ("Oku-Run: r1", *said)


def test_a_target_of_others_is_told_nothing() -> None:
    """Its spec is sent as it was written."""
    spec = Spec(urls=(Url("http://example.org/{i}"),), delay="1s", seed=1)  # type: ignore[arg-type]
    assert ask_servers(spec, "r1", SERVERS) == spec
