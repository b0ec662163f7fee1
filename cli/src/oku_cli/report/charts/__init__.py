"""The charts of a report: each is built as a `Chart` and drawn as HTML with an SVG in it."""
