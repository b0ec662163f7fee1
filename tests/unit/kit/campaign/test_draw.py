from tests.kit.campaign.draw import Deed, draw_run


def test_a_seed_always_draws_the_same_run_and_others_draw_others() -> None:
    """A failing seed can be played again."""
    draws = [draw_run(seed) for seed in range(200)]
    assert draws == [draw_run(seed) for seed in range(200)]
    assert len({draw.build_flags()[1] for draw in draws}) > 100


def test_a_campaign_has_every_deed_every_victim_and_both_engines() -> None:
    """Victims are processes that the run has."""
    draws = [draw_run(seed) for seed in range(200)]
    faults = [fault for draw in draws for fault in draw.faults]
    assert {fault.deed for fault in faults} == set(Deed)
    assert {fault.victim.rpartition("-")[0] or fault.victim for fault in faults} == {
        "", "worker", "server", "coordinator", "broker",
    }  # fmt: skip
    assert len({draw.engine for draw in draws}) == 2
    for draw in draws:
        processes = {
            "", "coordinator", "broker", *(f"worker-{n + 1}" for n in range(draw.workers)),
            *(f"server-{n + 1}" for n in range(draw.servers)),
        }  # fmt: skip
        assert {fault.victim for fault in draw.faults} <= processes
        assert 0 < draw.requests <= 80_000
        assert str(draw.requests) in draw.build_flags()
