import re

from tests.kit.regular_expressions import find_expressions, list_used_methods

SOURCE = """
import re
import re as other
import regex
import msgspec
from re import compile as build, sub
from msgspec import Meta
from unrelated import compile

ONE = re.compile(r"a+", re.IGNORECASE)
OWN = re.compile(r"b+")  # own text: a constant
TWO: re.Pattern[str] = build(f"{ONE.pattern}x")
Name = msgspec.Meta(pattern="^c+$")
Other = Meta(min_length=1)
ALL = [*map(re.compile, NAMES)]

class Kind:
    PART = regex.compile("d")

    def method(self, text):
        import re as inner
        found = inner.search("e", text) or other.search("f", text)
        return sub(r"\\s+", "", found, flags=re.ASCII | re.DOTALL)

text.search("g")
re.escape("h")
compile("i")
"""


def test_expressions_are_found_whatever_the_library_is_called() -> None:
    """Functions that are only mentioned count, and so do patterns of types."""
    found = find_expressions(SOURCE, "module")
    assert [each.place for each in found] == [
        "module:ONE",
        "module:OWN",
        "module:TWO",
        "module:Name",
        "module:ALL",
        "module:Kind",
        "module:Kind.method",
        "module:Kind.method 2",
        "module:Kind.method 3",
    ]
    assert [each.place for each in found if each.is_own] == ["module:OWN"]
    assert [each.method for each in found] == ["", "", "", "search", "", "", "search", "search", "sub"]
    assert [each.name for each in found] == ["ONE", "OWN", "TWO", "Name", "ALL", "", "", "", ""]


def test_an_expression_that_stands_as_it_is_is_compiled_with_its_flags() -> None:
    """One that is built from parts is not, for what they are is known to its module alone."""
    compiled = {each.place: each.compiled for each in find_expressions(SOURCE, "module")}
    assert compiled["module:ONE"] == re.compile("a+", re.IGNORECASE)
    assert compiled["module:Name"] == re.compile("^c+$")
    assert compiled["module:Kind.method 3"] == re.compile(r"\s+", re.ASCII | re.DOTALL)
    assert [place for place, each in compiled.items() if each is None] == ["module:TWO", "module:ALL"]


def test_the_methods_of_a_variable_are_found() -> None:
    """It may have been imported, and a method may be kept for later."""
    source = "ONE.search(text)\nmatch = module.ONE.match\nTWO.sub('', text)\nONE.pattern"
    assert list_used_methods(source, "ONE") == {"search", "match"}
