"""HTML and SVG out of text: what is no markup yet is escaped when it becomes part of some.

Names of runs, URLs, reasons and the like are foreign input; none of them can reach a page in another way.
"""

from html import escape


class Html(str):
    """Markup that is ready to stand in a page."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: object) -> Html:
    """An element: children in order, those that are no `Html` escaped.

    Attributes are named as in Python (`class_`, `aria_label`); None and False leave one out, True gives it
    without a value.
    """
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        written = name.rstrip("_").replace("_", "-")
        parts.append(f" {written}" if value is True else f' {written}="{escape(str(value))}"')
    return Html(f"{''.join(parts)}>{join(*children)}</{tag}>")


def join(*children: str) -> Html:
    """Markup and text one after the other."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))
