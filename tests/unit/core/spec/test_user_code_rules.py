"""What a spec of a locustfile may say of the requests that the file makes itself."""

from typing import Any

import pytest

from oku_core.errors import UserError
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

CODE = f"locustfile.py@sha256:{'a' * 64}:10:locustfile.py"


def parse(**values: Any) -> Spec:
    """Parse the spec of a locustfile with these keys, too."""
    given = {"engine": "locust", "scenario": CODE, "iterations": 10}
    return parse_spec(Source("s.yaml", given | values))


def test_clients_get_what_they_can_take() -> None:
    """Headers that are the same for all, TLS, a proxy and a limit of time."""
    spec = parse(header=["Team: a", "Filter: {x}"], insecure=True, proxy="http://proxy:3128", timeout="2s")
    assert (len(spec.headers), spec.insecure, spec.timeout_s) == (2, True, 2.0)
    assert parse(keepalive=True).keepalive


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "keepalive",
            False,
            "s.yaml: keepalive: the clients of a locustfile keep connections; let it send Connection: close",
        ),
        (
            "header",
            "User: {i}",
            "s.yaml: header: User: {i} differs between requests; let the locustfile send it",
        ),
    ],
)
def test_what_they_cannot_is_refused(key: str, value: object, message: str) -> None:
    """In one line, with what to write instead."""
    with pytest.raises(UserError) as caught:
        parse(**{key: value})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("included", "message"),
    [
        (["locustfile.py"], "locustfile.py is the path of the scenario"),
        (["lib", "lib/a.py"], "lib/a.py cannot stand below lib, which is a file"),
        (["locustfile.py/a"], "locustfile.py/a cannot stand below locustfile.py, which is a file"),
    ],
)
def test_no_file_takes_the_place_of_another_one(included: list[str], message: str) -> None:
    """They stand in one folder when the code runs."""
    with pytest.raises(UserError) as caught:
        parse(include=[f"{path}@sha256:{'b' * 64}:3:a" for path in included])
    assert str(caught.value) == f"s.yaml: include: {message}"


def test_files_may_stand_in_folders() -> None:
    """Names that begin alike are different ones."""
    paths = ["lib/a.py", "lib/a", "lib.py", "libs"]
    assert len(parse(include=[f"{path}@sha256:{'b' * 64}:3:a" for path in paths]).include) == 4
