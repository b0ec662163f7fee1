"""Chooses the engine of a spec by its keys: `Field.refusals` is the table of the engines that lack one."""

from collections.abc import Collection, Iterator
from typing import NamedTuple, Self

from oku_core.spec.fields import FIELDS, Field
from oku_core.spec.load import Fault
from oku_core.spec.spec import AUTO_ENGINE, USER_CODE_ENGINES, Engine, Spec

FASTEST_FIRST = (Engine.HTTPTOOLS, Engine.NGHTTP2, Engine.AIOHTTP)
"""The engines that `auto` tries, in this order; the last one can do all of HTTP/1.1."""
_DEFAULTS = Spec()


class EngineChoice(NamedTuple):
    """An engine, and why a faster one does not support the spec; empty if it is the fastest."""

    engine: Engine
    reason: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of a choice."""
        engine, _, reason = text.partition(": ")
        return cls(Engine(engine), reason)

    def __str__(self) -> str:
        """Write both, as in `aiohttp: needs a proxy`."""
        return f"{self.engine}: {self.reason}" if self.reason else str(self.engine)


def choose_engine(spec: Spec) -> EngineChoice:
    """Choose the engine that the spec names, or else the fastest that supports all of its keys."""
    engine = spec.engine or next(
        (each for each in FASTEST_FIRST if not any(_iter_lacking(spec, each))), FASTEST_FIRST[-1]
    )
    if engine in USER_CODE_ENGINES:
        return EngineChoice(engine)
    needs = ", ".join(field.need for field in _iter_lacking(spec, FASTEST_FIRST[0]) if field.need)
    return EngineChoice(engine, f"needs {needs}" if needs else "")


def iter_engine_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    """Yield the given keys that the engine of a spec does not support."""
    engine = spec.engine or FASTEST_FIRST[-1]
    for field in FIELDS:
        if field.key in given and engine in field.refusals and _is_used(field, spec):
            yield field.key, field.refusals[engine].format(engine=spec.engine or AUTO_ENGINE)


def _iter_lacking(spec: Spec, engine: Engine) -> Iterator[Field]:
    """The keys of a spec that differ from their defaults and that an engine does not support."""
    for field in FIELDS:
        is_own = getattr(spec, field.attribute) != getattr(_DEFAULTS, field.attribute)
        if is_own and engine in field.refusals and not field.alias_of:
            yield field


def _is_used(field: Field, spec: Spec) -> bool:
    """Whether the value of a key asks for anything: `false`, 0 redirects and no tags do not."""
    value, default = getattr(spec, field.attribute), getattr(_DEFAULTS, field.attribute)
    return bool(value != default or (value and not field.is_switch))
