"""Shows the account of a run, its hooks, and the flags of its validity."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from oku_cli.process.interrupt_hints import describe_pause
from oku_cli.terminal.console import BAD, CAUTION, GOOD, STRONG
from oku_cli.terminal.layout import Flow, Labelled, build_sides, build_state
from oku_cli.terminal.printable import make_printable
from oku_cli.views.exit_reasons import describe_failure, describe_nothing_ok, list_hints
from oku_core.accounting.outcome import count_sent
from oku_core.accounting.run_state import ACTIVE_STATES, FINAL_STATES, RunState
from oku_core.spec.spec import OPEN_END
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.judgement import judge_run
from oku_core.summary.summary import HookState, HookSummary, ServersSummary, Summary, Unit
from oku_core.summary.validity import Flag, Validity
from oku_core.tables.formatting import (
    format_count,
    format_ok,
    format_progress,
    format_rate,
    format_share,
    in_units,
)

_ENDED = FINAL_STATES | {RunState.TEARING_DOWN}
"""States in which nothing more is sent."""


_HOOK_STATES = {
    HookState.OWED: "is to be called",
    HookState.BEGUN: "is being called",
    HookState.LOST: "is to be called again",
    HookState.DONE: "took",
    HookState.FAILED: "failed after",
    HookState.GIVEN_UP: "was given up",
}


def build_headline(summary: Summary, hint: str | None) -> RenderableType:
    """Build the headline: the run, its state and the reason, how much is accounted and what it waits for."""
    title = " · ".join(part for part in (f"run {summary.run}", summary.name, summary.engine) if part)
    head = build_sides(Text(title, style=STRONG), build_summary_state(summary))
    lines: list[RenderableType] = [head, *_list_work(summary), _build_extent(summary)]
    lines += [Text(notice, style=CAUTION) for notice in summary.notices]
    if summary.state is RunState.PAUSED:
        lines.append(Text(f"it {describe_pause(summary.reason)}", style=CAUTION))
    elif summary.reason:
        lines.append(Text(summary.reason, style=BAD))
    lines += build_hooks(summary.hooks)
    failure = describe_failure(summary) or describe_nothing_ok(summary)
    advice = dict.fromkeys([*filter(None, [failure]), *list_hints(summary)])
    lines += [Text(text, style=CAUTION) for text in advice]
    if hint:
        lines.append(Text(hint))
    return Group(*lines)


def build_summary_state(summary: Summary) -> Text:
    """Build the state of a run with the share that was ok, in the colour that all of its summary asks for."""
    return build_state(summary.state, judge_run(summary), format_ok(summary.outcomes.ok, summary.accounted))


def build_hooks(hooks: Iterable[HookSummary]) -> Iterator[Text]:
    """A line for each hook, and the traceback of one that failed."""
    for hook in hooks:
        yield Text(describe_hook(hook), style=_choose_hook_style(hook))
        if hook.state is HookState.FAILED:
            for line in hook.traceback.splitlines():
                yield Text(f"  {make_printable(line)}")


def describe_hook(hook: HookSummary) -> str:
    """Describe the outcome of a hook: `setup took 1.2 s, called 2 times`."""
    parts = [str(hook.hook), _HOOK_STATES[hook.state]]
    if hook.took_s is not None:
        parts.append(format_duration(hook.took_s))
    called = f", called {hook.calls} times" if hook.calls > 1 else ""
    return " ".join(parts) + called


def _choose_hook_style(hook: HookSummary) -> str:
    if hook.state is HookState.FAILED:
        return BAD
    return "" if hook.state is HookState.DONE else CAUTION


def build_planned(summary: Summary, planned_rps: float) -> RenderableType:
    """Show the planned rate, the share of due requests that were sent, and the share of seconds on time."""
    sent = count_sent(msgspec.structs.astuple(summary.outcomes))
    share = format_share(sent, summary.accounted)
    style = GOOD if sent == summary.accounted else BAD
    phrases = [Text(f"{format_rate(planned_rps)};"), Text(f"{share} of what was due was sent", style=style)]
    if summary.plan is not None and summary.plan.seconds:
        kept, seconds = summary.plan.seconds - summary.plan.off_seconds, summary.plan.seconds
        style = GOOD if kept == seconds else BAD
        text = f"{format_count(kept)} of {format_count(seconds)} seconds as planned"
        phrases[-1].append(",")
        phrases.append(Text(text, style=style))
    return Flow(*phrases)


def build_status_counts(statuses: Mapping[str, int]) -> RenderableType:
    """Show how many responses had each status code."""
    counts = (
        Text.assemble(f"{status} ", (format_count(count), STRONG))
        for status, count in sorted(statuses.items())
    )
    return Flow(*counts, gap=3)


def build_served(summary: Summary, servers: ServersSummary) -> Text:
    """Show what the delay servers counted, and why it may differ from the accounted requests."""
    served, ok = servers.served, summary.outcomes.ok
    sent = count_sent(msgspec.structs.astuple(summary.outcomes))
    base = "accounted" if sent == summary.accounted else "sent"
    text = Text.assemble((format_count(served), STRONG))
    if summary.state in ACTIVE_STATES:
        return text.append(" so far, those under way included")
    if served < ok:
        return text.append(f", fewer than the {format_count(ok)} that are ok", style=BAD)
    if served > sent + summary.resent_at_most:
        return text.append(f", {format_count(served - sent)} more than {base}", style=BAD)
    if served == sent:
        return text.append(f" = {base}", style=GOOD)
    if served > sent:
        return text.append(f" = {base} + {format_count(served - sent)} of those resent")
    return text.append(f" = {base} - {format_count(sent - served)} of those without a response")


def describe_missing(state: RunState) -> str:
    """Describe the fate of requests that are not accounted, as the end of a sentence."""
    return "were not made" if state in _ENDED else "are left"


def _list_work(summary: Summary) -> Iterator[RenderableType]:
    """List the target and the load, and why its engine is not the fastest."""
    choice = str(summary.engine_choice) if summary.engine_reason else ""
    if parts := [part for part in (summary.target, summary.load, choice) if part]:
        yield Flow(*parts, between=" · ")


def _build_extent(summary: Summary) -> RenderableType:
    accounted = Text(format_count(summary.accounted), style=STRONG)
    units = () if summary.unit is Unit.REQUEST else (in_units("requests", summary.unit),)
    if summary.requests >= OPEN_END:
        was = "was" if summary.state in _ENDED else "is"
        return Flow(accounted, *units, "accounted,", Text(f"its time {was} not up", style=CAUTION))
    phrases = [accounted, Text(f"of {format_count(summary.requests)}"), *units]
    left = summary.requests - summary.accounted
    if summary.state == RunState.COMPLETED or (summary.state in _ENDED and not left):
        return Flow(*phrases, "accounted")
    missing = format_count(left)
    progress = format_progress(summary.accounted, summary.requests)
    rest = (f"{progress};", missing, describe_missing(summary.state))
    return Flow(*phrases, "accounted,", *(Text(phrase, style=CAUTION) for phrase in rest))


def build_validity_rows(flags: Sequence[Validity], unit: Unit = Unit.REQUEST) -> RenderableType:
    """Build a row for each flag: its name in the JSON summary, the requests concerned, and its meaning."""
    rows = []
    for validity in flags:
        style = BAD if validity.flag is Flag.UNBALANCED else CAUTION
        words = (*_list_extent(validity, unit), *in_units(validity.detail, unit).split())
        rows.append((Text(f"! {validity.flag.replace('_', ' ')}", style=style), Flow(*words)))
    return Labelled(rows, max((label.cell_len for label, _ in rows), default=0), gap=3)


def describe_flag(validity: Validity, unit: Unit) -> str:
    """How many requests a flag concerns, their share if they have one, and its meaning."""
    return " ".join([*_list_extent(validity, unit), in_units(validity.detail, unit)])


def _list_extent(validity: Validity, unit: Unit) -> list[str]:
    noun = in_units("request" if validity.requests == 1 else "requests", unit)
    count = f"{format_count(validity.requests)} {noun}"
    if validity.share is None:
        return [f"{count}:"]
    return [f"{count},", f"{format_share(validity.share, 1)}:"]
