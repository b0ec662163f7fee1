import msgspec
import pytest
from tests.kit.runs.key_samples import SAMPLES, build_values

from oku_core.process.supervision import Supervisor
from oku_core.spec.engine_choice import choose_engine
from oku_core.spec.fields import FIELD_BY_KEY, FIELDS
from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.spec import HTTP_ENGINES, Engine
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.engine_registry import build_engine
from oku_workers.feed.feed import Feed


def read_fault(*keys: str, engine: Engine | None = None) -> str:
    """Why a spec with samples of these keys is refused; empty if it is not."""
    try:
        parse_spec(Source("s", build_values(keys, engine)))
    except SpecError as error:
        return str(error)
    return ""


def test_an_engine_refuses_the_keys_that_the_table_says_and_no_others() -> None:
    """For every key and every engine; each refusal names the key and the reason of the table."""
    assert SAMPLES.keys() == FIELD_BY_KEY.keys()
    for field in FIELDS:
        for engine in Engine:
            fault = read_fault(field.key, engine=engine)
            reason = field.refusals.get(engine, "").format(engine=engine)
            assert fault == (reason and f"s: {field.key}: {reason}"), engine
    refusal = "s: proxy: the engine httptools does not support this, use aiohttp"
    assert read_fault("proxy", engine=Engine.HTTPTOOLS) == refusal


@pytest.mark.heavy
@pytest.mark.parametrize("first", FIELD_BY_KEY)
async def test_auto_chooses_an_engine_that_does_it(first: str) -> None:
    """Alone and with every other key. It refuses only what each engine of HTTP refuses."""
    for keys in [(first,), *((first, second) for second in FIELD_BY_KEY if second > first)]:
        try:
            spec = parse_spec(Source("s", build_values(keys)))
        except SpecError:
            assert all(read_fault(*keys, engine=engine) for engine in HTTP_ENGINES), keys
            continue
        engine, reason = choose_engine(spec)
        assert read_fault(*keys, engine=engine) == "", keys
        given = build_values(keys)
        needs = ", ".join(field.need for field in FIELDS if field.need and field.key in given)
        assert reason == (needs and f"needs {needs}"), keys
        chosen = msgspec.structs.replace(spec, engine=engine)
        built = build_engine(chosen, Feed(), Supervisor(), EngineContext())
        await built.open()
        await built.close()
