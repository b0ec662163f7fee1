from collections.abc import Sequence
from typing import Any

from tests.kit.campaign.draw import Deed, draw_run

from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec


def test_a_seed_always_draws_the_same_run_and_others_draw_others() -> None:
    """A failing seed can be played again."""
    draws = [draw_run(seed) for seed in range(200)]
    assert draws == [draw_run(seed) for seed in range(200)]
    assert len({draw.load for draw in draws}) > 100


def test_a_campaign_has_every_deed_every_victim_and_both_engines() -> None:
    """Victims are processes that the run has."""
    draws = [draw_run(seed) for seed in range(200)]
    faults = [fault for draw in draws for fault in draw.faults]
    assert {fault.deed for fault in faults} == set(Deed)
    assert {fault.victim.rpartition("-")[0] or fault.victim for fault in faults} == {
        "", "worker", "server", "coordinator",
    }  # fmt: skip
    assert len({draw.engine for draw in draws}) == 2
    for draw in draws:
        processes = {
            "", "coordinator", *(f"worker-{n + 1}" for n in range(draw.workers)),
            *(f"server-{n + 1}" for n in range(draw.servers)),
        }  # fmt: skip
        assert {fault.victim for fault in draw.faults} <= processes


def test_a_campaign_has_runs_of_every_load_and_oku_takes_each() -> None:
    """Open ones and closed ones, with and without an end in time, stages, a warm-up and a limit."""
    draws = [draw_run(seed) for seed in range(200)]
    flags = {word for draw in draws for word in draw.load if word.startswith("--")}
    assert flags == {
        "--requests", "--concurrency", "--duration", "--stage", "--rate", "--max-rate", "--range-size",
        "--arrivals", "--seed", "--late", "--warm-up",
    }  # fmt: skip
    for draw in draws:
        spec = read_load(draw.load)
        assert spec.is_timed or spec.requests <= 80_000
        assert spec.length_s is None or 3 <= spec.length_s <= 26


def read_load(flags: Sequence[str]) -> Spec:
    """Read the spec that flags describe."""
    values: dict[str, Any] = {}
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        key = flag.removeprefix("--")
        if key == "stage":
            values["stages"] = [*values.get("stages", ()), value]
        else:
            values[key] = value
    return parse_spec(Source(None, values))
