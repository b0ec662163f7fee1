"""Puts an HTML document together that contains its styles and its script and loads nothing."""

from collections.abc import Iterable, Sequence
from importlib.resources import files

import msgspec

from oku_cli.report.charts.chart import Chart, Track, build_chart, name_units
from oku_cli.report.markup import Html, element
from oku_core.summary.summary import Unit

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class ReadOut:
    """Collects what the script needs: the numbers that the pointer can read out of the charts."""

    def __init__(self, unit: Unit = Unit.REQUEST) -> None:
        self._unit = unit
        self.tracks: dict[str, Track] = {}
        self.charts: list[Chart] = []

    def build_charts(self, charts: Iterable[Chart | None]) -> list[Html]:
        """Build charts, those that are not None, and keep their numbers."""
        present = [name_units(chart, self._unit) for chart in charts if chart is not None]
        self.charts += present
        return [build_chart(chart) for chart in present]

    def build_script(self) -> Html:
        """Build the script with its numbers."""
        series = {chart.id: chart.series for chart in self.charts if chart.series}
        data = msgspec.json.encode({"tracks": self.tracks, "series": series}).decode()
        # A text with `</script>` would end the script, so `<` is escaped as JSON allows.
        return Html(
            f'<script type="application/json" id="numbers">{data.replace("<", chr(92) + "u003c")}</script>\n'
            f"<script>{_read('read_out.js')}</script>"
        )


def build_document(title: str, parts: Sequence[Html], read_out: ReadOut) -> str:
    """Build a document from its title and its parts: a header, sections, a footer."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            element("title", title),
            f"<style>{_read('style.css')}</style></head>",
            "<body>",
            element("main", *parts),
            read_out.build_script(),
            "</body></html>",
            "",
        ]
    )


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
