import pytest

from oku_cli.remote.remote_run import refuse_shape
from oku_core.errors import UserError


def test_flags_that_shape_a_local_stack_are_refused_at_a_remote_coordinator() -> None:
    """They are not ignored silently."""
    with pytest.raises(UserError, match="--servers: shapes a local stack; it cannot be combined with --co"):
        refuse_shape(servers=2)
    with pytest.raises(UserError, match="--workers: shapes a local stack"):
        refuse_shape(workers=2, servers=None)
    refuse_shape(workers=None, servers=None)
