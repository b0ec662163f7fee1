"""LogQL for the lines of docs/metrics.md, by its rules.

- The range of a query over time is its step (`STEP`), so that each line counts once. A figure of a whole run
  takes the whole time range (`SPAN`), as one instant query.
- Only the fields that are needed are parsed from a line: parsing is most of what a query costs.
- Everything is aggregated without the labels of the stream, because late lines have one label more.
- Of several quantiles only the largest is taken, never a sum, a mean or a quantile.
"""

from collections.abc import Iterable, Sequence

from oku_core.results.lines import LineKind

STEP = "$__interval"
SPAN = "$__range"
NANOSECONDS = "unixEpochNanos"
MILLISECONDS = "unixEpochMillis"


ONE_RUN = 'run="$run"'
"""Selects the lines of the run that is chosen at the top of a dashboard."""
ALL_RUNS = 'name=~"$name"'
_LABELS = ("run", "name")
"""Labels of the stream by which a query may aggregate; they are not in the lines."""


class Lines:
    """The lines of a run or of several, of one kind or several.

    Args:
        whose: a matcher of the stream, such as `ONE_RUN`.
        kinds: which lines.
        where: stages of the pipeline that filter them, such as `type="validity"`, on the fields in
            `needs`.
        needs: fields that those stages use, in addition to those that a query takes itself.
    """

    def __init__(self, whose: str, *kinds: LineKind, where: str = "", needs: Sequence[str] = ()) -> None:
        matcher = f'kind="{kinds[0]}"' if len(kinds) == 1 else f'kind=~"{"|".join(kinds)}"'
        self._selector = f'{{app="oku", {whose}, {matcher}}}'
        self._where = f" | {where}" if where else ""
        self._needs = needs

    def pick(self, *fields: str) -> str:
        """The lines with these fields as labels."""
        names = dict.fromkeys(name for name in (*self._needs, *fields) if name not in _LABELS)
        taken = ", ".join(f'{name.replace(".", "_")}="{name}"' for name in names)
        return f"{self._selector}{f' | json {taken}' if taken else ''}{self._where}"

    def write(self, *fields: str) -> str:
        """The lines as text: these fields, with colons between."""
        return f"{self.pick()} | line_format `{': '.join(f'{{{{.{field}}}}}' for field in fields)}`"

    def sum(self, field: str, window: str, by: Sequence[str] = ()) -> str:
        """The sum of a field, by other fields."""
        return self._fold("sum", "sum_over_time", (field, *by), field, window, by)

    def max(self, field: str, window: str, by: Sequence[str] = ()) -> str:
        """The largest value of a field."""
        return self._fold("max", "max_over_time", (field, *by), field, window, by)

    def min(self, field: str, window: str, by: Sequence[str] = ()) -> str:
        """The smallest value of a field."""
        return self._fold("min", "min_over_time", (field, *by), field, window, by)

    def mean(self, field: str, window: str) -> str:
        """The mean of a field over the lines."""
        return f"avg(avg_over_time({self.pick(field)} | unwrap {field} [{window}]) by (run))"

    def last(self, field: str, window: str, by: Sequence[str] = ()) -> str:
        """The value of a field in the latest line that has it."""
        name = field.replace(".", "_")
        inner = ", ".join(dict.fromkeys(("run", *by)))
        return (
            f"max{_by(by)} (last_over_time({self.pick(field, *by)} | unwrap {name} [{window}]) by ({inner}))"
        )

    def count(self, window: str, by: Sequence[str] = ()) -> str:
        """How many lines there are."""
        return f"sum{_by(by)} (count_over_time({self.pick(*by)} [{window}]))"

    def latest_at(self, window: str, by: Sequence[str], unit: str = NANOSECONDS) -> str:
        """When the latest line was, as Unix time."""
        return self._time("max", window, by, unit)

    def earliest_at(self, window: str, by: Sequence[str], unit: str = NANOSECONDS) -> str:
        """When the earliest line was, as Unix time."""
        return self._time("min", window, by, unit)

    def _time(self, fold: str, window: str, by: Sequence[str], unit: str) -> str:
        stamp = f"| label_format at=`{{{{ __timestamp__ | {unit} }}}}` | unwrap at"
        return f"{fold}{_by(by)} ({fold}_over_time({self.pick(*by)} {stamp} [{window}]))"

    def _fold(
        self, outer: str, inner: str, fields: Iterable[str], field: str, window: str, by: Sequence[str]
    ) -> str:
        return f"{outer}{_by(by)} ({inner}({self.pick(*fields)} | unwrap {field} [{window}]))"


def rate(ticks: Lines, field: str, window: str = STEP) -> str:
    """The sum of a field per second of the ticks, which is right for any number of ticks in a step.

    It is right for several lines of one second, too: the length of the second is in one of them alone.
    """
    return f"{ticks.sum(field, window)} / {ticks.sum('seconds', window)}"


def _by(labels: Sequence[str]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""
