import pytest
from tests.unit.server.client import GET

WAYS = {
    "parsed": (GET[:20], GET[20:]),
    "known": (GET,),
}
"""How a request comes: in two pieces, which takes a parser, or whole with lines that are known already."""


@pytest.fixture(params=WAYS)
def pieces(request: pytest.FixtureRequest) -> tuple[bytes, ...]:
    """The pieces of one request, once for each way through the server."""
    return WAYS[request.param]
