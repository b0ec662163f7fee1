"""What newcomers type: the first line for each load generator, and the one that makes a report.

Each makes a thousand requests, fifty at a time. k6 and Locust need a script first; those here are as short as
their documentation has them, and Locust's also counts, because Locust knows a time and no number.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from oku_benchmarks.turns.turn import CONTESTANTS

REQUESTS, CONCURRENCY = 1000, 50
OKU, OHA, K6, LOCUST = "oku", "oha", "k6", "locust"


@dataclass(frozen=True, kw_only=True)
class FirstLine:
    """How one of them is used for the first time.

    Args:
        line: what is typed; `URL` stands for the target.
        result: text that its screen shows with the result and not before.
        script: the file that must be there first, in `contestants`; empty when none must.
        reports: lines that write a report, by the file that they should write.
    """

    line: str
    result: str
    script: str = ""
    reports: Mapping[str, str] = field(default_factory=dict)

    def count_script_lines(self) -> int:
        """How many lines of a script are written first, without empty ones and comments."""
        text = (CONTESTANTS / self.script).read_text() if self.script else ""
        lines = (line.strip() for line in text.splitlines())
        return sum(bool(line) and not line.startswith(("#", "//")) for line in lines)

    def split(self, line: str, url: str) -> list[str]:
        """The words of a line, with the URL of the target and the path of the script."""
        path = str(CONTESTANTS / self.script)
        words = (path if word == self.script else word for word in shlex.split(line))
        return [word.replace("URL", url) for word in words]


_OKU = f"oku run URL -n {REQUESTS} -c {CONCURRENCY}"
_OHA = f"oha -n {REQUESTS} -c {CONCURRENCY} URL"
_K6 = f"k6 run -u {CONCURRENCY} -i {REQUESTS} -e TARGET=URL first_k6.js"
_LOCUST = f"locust -f first_locustfile.py --headless -u {CONCURRENCY} -r {CONCURRENCY} -s 5 --host URL"
FIRST_LINES: Mapping[str, FirstLine] = {
    OKU: FirstLine(line=_OKU, result="throughput", reports={".oku/reports/*.html": _OKU}),
    OHA: FirstLine(
        line=_OHA,
        result="DNS+dialup",
        reports={"result.json": f"{_OHA} --output-format json --output result.json"},
    ),
    K6: FirstLine(
        line=_K6,
        result="http_reqs",
        script="first_k6.js",
        reports={
            "summary.json": f"{_K6} --summary-export summary.json",
            "report.html": f"env K6_WEB_DASHBOARD=true K6_WEB_DASHBOARD_EXPORT=report.html {_K6}",
        },
    ),
    LOCUST: FirstLine(
        line=_LOCUST,
        result="percentiles (approximated)",
        script="first_locustfile.py",
        reports={"report.html": f"{_LOCUST} --html report.html"},
    ),
}
