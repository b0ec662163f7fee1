"""The error of a spec that cannot be carried out by this worker, whatever the target does."""

from oku_core.errors import UserError


class EngineError(UserError):
    """No request of the spec can be sent by this worker; the message is one line for the user."""
