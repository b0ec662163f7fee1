import asyncio

import pytest

from oku_core.process.supervision import Health
from oku_workers.engines.sweeping import keep_sweeping


@pytest.mark.parametrize(
    ("limit_s", "pause_s"), [(3600.0, 0.25), (12.5, 0.25), (1.0, 0.02), (0.25, 0.005), (0.001, 0.005)]
)
async def test_short_limits_are_looked_after_often(
    monkeypatch: pytest.MonkeyPatch, limit_s: float, pause_s: float
) -> None:
    """50 times within the limit, but at least four times a second and at most 200 times."""
    seen: list[float | str] = []

    async def sleep(seconds: float) -> None:
        if len(seen) == 4:
            raise asyncio.CancelledError
        seen.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await keep_sweeping(lambda: seen.append("look"), int(limit_s * 1e9), Health("timeouts"))
    assert seen == [pause_s, "look", pause_s, "look"]
