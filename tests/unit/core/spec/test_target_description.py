from typing import Any

import pytest

from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.target_description import LONGEST_URL, describe_target


def describe(**values: Any) -> str:
    """The target of a spec in words."""
    return describe_target(parse_spec(Source("spec", values)))


def test_a_target_is_its_url() -> None:
    """Without one it is Oku's own delay servers; of several, the first is named."""
    assert describe() == "delay servers"
    assert describe(url="http://h:8080/items/{i}") == "http://h:8080/items/{i}"
    assert describe(url=["http://h/a", "http://h/b", "http://h/a"]) == "http://h/a and 1 more"


@pytest.mark.parametrize(
    "url", ["http://user:secret@h/a?key=secret", "http://secret@h/a?secret", "https://{env:NAME}:x@h/a?b={i}"]
)
def test_users_and_queries_are_left_out(url: str) -> None:
    """They may be secret."""
    assert describe(url=url) == f"{url.partition(':')[0]}://h/a?…"


def test_targets_are_named() -> None:
    """So is the place that they have in common."""
    targets = [{"name": name, "url": f"/{name}"} for name in ("item", "cart", "buy", "pay")]
    base = "https://user:secret@shop.example"
    assert describe(targets=targets[:2], **{"base-url": base}) == "item, cart at https://shop.example"
    assert describe(targets=targets, **{"base-url": base}) == (
        "item, cart, buy and 1 more at https://shop.example"
    )
    assert describe(targets=targets[:1]) == "item at delay servers"


def test_a_long_url_is_cut() -> None:
    """A head has one line."""
    text = describe(url=f"http://h/{'x' * 200}?a")
    assert (len(text), text[-2:]) == (LONGEST_URL - 2, "x…")
