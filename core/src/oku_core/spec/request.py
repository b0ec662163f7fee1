"""What request `i` is: URL, headers and body as pure functions of the spec and the index."""

from collections.abc import Callable

from oku_core.spec.spec import Spec
from oku_core.spec.target import INDEX_PLACEHOLDER


def build_template(text: str) -> Callable[[int], str]:
    """A function from an index to `text` with every `{i}` replaced by it."""
    parts = text.split(INDEX_PLACEHOLDER)
    if len(parts) == 1:
        return lambda _: text
    if len(parts) == 2:
        before, after = parts
        return lambda index: f"{before}{index}{after}"
    return lambda index: str(index).join(parts)


def is_constant(text: str) -> bool:
    """Whether `text` is the same for every index."""
    return INDEX_PLACEHOLDER not in text


def build_headers(spec: Spec) -> Callable[[int], list[tuple[str, str]]]:
    """A function from an index to the headers of that request, in the order of the spec."""
    split = [header.partition(":") for header in spec.headers]
    templates = [(name, build_template(value.strip())) for name, _, value in split]
    return lambda index: [(name, value(index)) for name, value in templates]
