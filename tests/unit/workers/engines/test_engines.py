import pytest

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_workers.engines import build_engine
from oku_workers.executions.feed import Feed


@pytest.mark.parametrize("engine", list(Engine))
async def test_every_engine_of_a_spec_can_be_had(engine: Engine) -> None:
    """With nothing in flight before it has begun, and it can be closed before that, too."""
    built = build_engine(
        Spec(urls=("http://127.0.0.1/",), engine=engine, concurrency=2), Feed(), Supervisor()
    )
    assert built.in_flight == 0
    await built.close()


@pytest.mark.parametrize("engine", list(Engine))
async def test_an_engine_without_work_can_be_closed(engine: Engine) -> None:
    """Its slots wait for an index, and end."""
    built = build_engine(
        Spec(urls=("http://127.0.0.1/",), engine=engine, concurrency=2), Feed(), Supervisor()
    )
    built.start()
    assert built.in_flight == 0
    await built.close()
