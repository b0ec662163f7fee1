from typing import Any

from oku_cli.imports.openapi.openapi_parameters import write_cookies, write_header, write_path, write_query

LIST, OBJECT = ["x y", "b"], {"r": 1, "g": True}


def test_lists_and_objects_stand_in_a_query_as_their_style_says() -> None:
    """Unless something is said, each item of a list is a pair of its own."""
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({}, LIST, "tags=x%20y&tags=b"),
        ({"explode": False}, LIST, "tags=x%20y,b"),
        ({"style": "pipeDelimited"}, LIST, "tags=x%20y%7Cb"),
        ({"style": "spaceDelimited"}, LIST, "tags=x%20y%20b"),
        ({"style": "spaceDelimited", "explode": True}, LIST, "tags=x%20y&tags=b"),
        ({}, OBJECT, "r=1&g=true"),
        ({"explode": False}, OBJECT, "tags=r,1,g,true"),
        ({"style": "deepObject"}, OBJECT, "tags%5Br%5D=1&tags%5Bg%5D=true"),
        ({"style": "deepObject", "explode": True}, {"a": [1]}, "tags%5Ba%5D=%5B1%5D"),
        ({"explode": False}, "a,b", "tags=a%2Cb"),
        ({"allowReserved": True}, "a/b,c?&#=+", "tags=a/b,c?%26%23%3D%2B"),
        ({}, [], ""),
        ({}, "", "tags="),
    ]
    written = ["&".join(write_query("tags", value, parameter)) for parameter, value, _ in cases]
    assert written == [query for _, _, query in cases]


def test_styles_of_a_path() -> None:
    """The examples of OpenAPI 3 (style examples), and their encoding."""
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({}, "a/b", "a%2Fb"),
        ({}, LIST, "x%20y,b"),
        ({"explode": True}, OBJECT, "r=1,g=true"),
        ({}, OBJECT, "r,1,g,true"),
        ({"style": "label"}, "v", ".v"),
        ({"style": "label"}, LIST, ".x%20y,b"),
        ({"style": "label", "explode": True}, LIST, ".x%20y.b"),
        ({"style": "label", "explode": True}, OBJECT, ".r=1.g=true"),
        ({"style": "matrix"}, "v", ";id=v"),
        ({"style": "matrix"}, LIST, ";id=x%20y,b"),
        ({"style": "matrix", "explode": True}, LIST, ";id=x%20y;id=b"),
        ({"style": "matrix"}, OBJECT, ";id=r,1,g,true"),
        ({"style": "matrix", "explode": True}, OBJECT, ";r=1;g=true"),
    ]
    written = [write_path("id", value, parameter) for parameter, value, _ in cases]
    assert written == [path for _, _, path in cases]


def test_headers_and_cookies() -> None:
    """They are not encoded."""
    assert write_header(LIST, {}) == "x y,b"
    assert (write_header(OBJECT, {}), write_header(OBJECT, {"explode": True})) == ("r,1,g,true", "r=1,g=true")
    assert (write_cookies("c", LIST, {}), write_cookies("c", LIST, {"explode": False})) == (
        "c=x y; c=b",
        "c=x y,b",
    )
