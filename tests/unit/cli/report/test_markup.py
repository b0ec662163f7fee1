from oku_cli.report.markup import Html, element, join


def test_text_is_escaped_in_markup() -> None:
    """This holds for children and attributes alike."""
    assert element("p", "<b>&", title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;&amp;</p>'


def test_markup_is_not_escaped_again() -> None:
    """Elements can be nested."""
    assert element("p", element("b", "<"), "<") == "<p><b>&lt;</b>&lt;</p>"
    assert isinstance(join("a", Html("<br>")), Html)


def test_attributes_are_named_as_in_python() -> None:
    """None and False leave an attribute out, and True gives it no value."""
    assert element("a", class_="x", aria_label="y", id=None, hidden=True, open=False) == (
        '<a class="x" aria-label="y" hidden></a>'
    )
