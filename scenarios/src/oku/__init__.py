"""Oku for scenarios: what user code imports, and the processes that run it.

A scenario imports from here alone: `from oku import Http, record`. What it does not ask for is not loaded:
the host of locustfiles must not load an event loop before the standard library is patched.

What `setup` of a scenario returns is stored in clear text, in the ledger and in messages to workers: return
no password and no key that lasts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oku.http.http import Http
    from oku.http.recording import record
    from oku.http.response import RequestError, Response

__all__ = ["Http", "RequestError", "Response", "record"]

_MODULES = {
    "Http": "oku.http.http",
    "RequestError": "oku.http.response",
    "Response": "oku.http.response",
    "record": "oku.http.recording",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
