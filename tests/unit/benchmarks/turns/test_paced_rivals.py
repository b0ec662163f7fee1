from pathlib import Path

from oku_benchmarks.turns.paced_rivals import PACED_RIVALS, Pace

PACE = Pace(url="http://127.0.0.1:8080/1", rate=20_000, seconds=8, connections=100)


def build_command(name: str) -> list[str]:
    """What a tool is started with."""
    return list(PACED_RIVALS[name].build("/bin/it", PACE, Path("report")))


def test_every_tool_is_told_the_url() -> None:
    """In its arguments, or in its environment as k6."""
    for name in PACED_RIVALS:
        assert any(PACE.url in word for word in build_command(name)), name


def test_a_tool_that_wants_the_rate_of_each_connection_gets_its_share() -> None:
    """h2load and hey; the others are told the whole."""
    shares = {name: "200" in build_command(name) for name in PACED_RIVALS}
    wholes = {name: any("20000" in word for word in build_command(name)) for name in PACED_RIVALS}

    assert {name for name, has_share in shares.items() if has_share} == {"h2load", "hey"}
    assert {name for name, has_whole in wholes.items() if not has_whole} == {"h2load", "hey"}


def test_every_tool_is_told_how_many_connections_it_may_have_unless_its_name_says_otherwise() -> None:
    """So all have the same cap."""
    for name in PACED_RIVALS:
        has_cap = any("100" in word.replace("20000", "") for word in build_command(name))
        assert has_cap != name.endswith("no cap"), name
