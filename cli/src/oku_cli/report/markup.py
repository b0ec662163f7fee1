"""Builds HTML and SVG: text that is not markup yet is escaped when it becomes part of an element.

Names of runs, URLs, reasons and the like are untrusted input; they can reach a page in no other way.
"""

from html import escape

from oku_cli.terminal.ci_commands import escape_marks_in_markup


class Html(str):
    """Markup that is safe to put into a page."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: object) -> Html:
    """Build an element with its children in order; those that are not `Html` are escaped.

    Attributes are named as in Python (`class_`, `aria_label`). One that is None or False is left out; one
    that is True has no value.
    """
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        written = name.rstrip("_").replace("_", "-")
        parts.append(f" {written}" if value is True else f' {written}="{_escape(str(value))}"')
    return Html(f"{''.join(parts)}>{join(*children)}</{tag}>")


def join(*children: str) -> Html:
    """Join markup and text; text is escaped."""
    return Html("".join(child if isinstance(child, Html) else _escape(child) for child in children))


def _escape(text: str) -> str:
    return escape_marks_in_markup(escape(text))
