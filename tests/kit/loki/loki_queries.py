"""Questions to a Loki, wherever it is."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

_PAGE_LINES = 5000
"""As many as Loki gives at once by default."""


class LokiQueries:
    """Asks a Loki; what it refuses is an `AssertionError` with its words.

    Args:
        url: its address.
        tenant: whose lines are asked for, if it has several.
    """

    def __init__(self, url: str, tenant: str = "") -> None:
        self.url = url
        self._tenant = tenant

    def get(self, path: str, **params: object) -> Any:
        """The JSON document of a GET, such as `/loki/api/v1/labels`."""
        request = urllib.request.Request(f"{self.url}{path}?{urllib.parse.urlencode(params)}")
        if self._tenant:
            request.add_header("X-Scope-OrgID", self._tenant)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.code} {error.read().decode(errors='replace')}") from error

    def query(self, query: str, *, at_s: float | None = None) -> list[dict[str, Any]]:
        """The result of an instant query, as of now unless told otherwise."""
        document = self.get("/loki/api/v1/query", query=query, time=at_s or time.time())
        result: list[dict[str, Any]] = document["data"]["result"]
        return result

    def query_range(
        self, query: str, *, start_ns: int, end_ns: int, step_s: float = 1.0
    ) -> list[dict[str, Any]]:
        """The result of a metric query over a time, as Grafana asks it."""
        document = self.get(
            "/loki/api/v1/query_range", query=query, start=start_ns, end=end_ns, step=f"{step_s}s"
        )
        result: list[dict[str, Any]] = document["data"]["result"]
        return result

    def fetch_lines(
        self, selector: str, *, start_ns: int | None = None, end_ns: int | None = None
    ) -> list[tuple[int, str]]:
        """Times and lines of all streams that a selector takes, oldest first; of the last day if not told.

        Loki hides here that a line is stored twice, unlike in `count_lines`. In neither does it show lines
        that it has just taken when their time is more than about 2.6 hours ago. Not more than a page of lines
        may have the same time.
        """
        end = time.time_ns() + 3600 * 10**9 if end_ns is None else end_ns
        start = end - 25 * 3600 * 10**9 if start_ns is None else start_ns
        found: list[tuple[int, str]] = []
        while True:
            document = self.get(
                "/loki/api/v1/query_range",
                query=selector, start=start, end=end, direction="forward", limit=_PAGE_LINES,
            )  # fmt: skip
            streams = document["data"]["result"]
            page = sorted((int(at), line) for stream in streams for at, line, *_ in stream["values"])
            if len(page) < _PAGE_LINES:
                return found + page
            newest = page[-1][0]
            assert newest > start, "more lines of one instant than a page holds"
            found += [line for line in page if line[0] < newest]
            start = newest

    def count_lines(self, selector: str, *, window: str = "1d") -> int:
        """How many lines a selector takes, by `count_over_time` up to now; one stored twice counts twice."""
        result = self.query(f"sum(count_over_time({selector}[{window}]))")
        return int(result[0]["value"][1]) if result else 0
