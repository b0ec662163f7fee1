import pytest
from tests.unit.server.client import GET

WAYS = {
    "parsed": (GET[:20], GET[20:]),
    "known": (GET,),
}
"""How a request arrives: in two pieces, which need a parser, or whole, with lines that are cached already."""


@pytest.fixture(params=WAYS)
def pieces(request: pytest.FixtureRequest) -> tuple[bytes, ...]:
    """The pieces of one request, for each way through the server."""
    return WAYS[request.param]
