"""Oku and other load generators take turns at one target: as many connections, the same time.

Requests are counted by the target, and the rate of each is that between 20 % and 90 % of its own requests:
no start-up, no opening of connections and no winding down is in it. Processor time is that of the client's
process in the same window.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import Observation, cut_window, look_on
from oku_benchmarks.measuring.spread import Spread, build_ratios
from oku_benchmarks.progress import log
from oku_benchmarks.turns.oku_turn import AIOHTTP, HTTPTOOLS, NGHTTP2, WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.rivals import HTTP2_RIVALS, RIVALS, Effort, Rival
from oku_benchmarks.turns.turn import Stage, Turn

OKU, OKU_AIOHTTP = "oku", "oku, aiohttp"
CLIENT, TARGET = "client", "target"
"""What the process of a rival and that of the target are called."""
_EXPECTED_RPS = {OKU: 80_000.0, OKU_AIOHTTP: 12_000.0}
"""Until the first turn has said."""
_BEGIN, _END = 0.2, 0.9


@dataclass(frozen=True, kw_only=True)
class Lineup:
    """Who takes turns, and in which protocol.

    Args:
        engines: of Oku, by the contestant's name.
        rivals: the others.
        streams: requests in flight on each connection.
    """

    engines: Mapping[str, str]
    rivals: Mapping[str, Rival]
    streams: int = 1


HTTP1 = Lineup(engines={OKU: HTTPTOOLS, OKU_AIOHTTP: AIOHTTP}, rivals=RIVALS)
HTTP2 = Lineup(engines={OKU: NGHTTP2}, rivals=HTTP2_RIVALS, streams=10)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What contestants ask, beyond the URL of the target.

    Args:
        more_urls: templates that are asked in turn with that of the target.
        spec: the file that tells Oku what to ask; empty if the target's URL is enough.
        label: all of it, for the log.
        counted_within: the share by which the target's count may be off.
    """

    more_urls: Sequence[str] = ()
    spec: str = ""
    label: str = ""
    counted_within: float = 0.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one contestant."""

    number: int
    contestant: str
    connections: int
    requests: int
    """That reached the target."""
    rate_rps: float
    cpu_us: float
    """Of one request."""
    cpu_share: float
    """Of one core, all threads of the client's process together."""
    target_share: float = msgspec.field(name="nginx_share")
    """Of one core, for the target; it was nginx when the first documents were written."""


_ONE_URL = Question()


class PeerContest:
    """Lets contestants take their turns, and remembers how fast each was in its last one.

    Args:
        stage: where; its target is asked, and the process of that looked at beside.
        turn_s: how long a turn is.
        question: what is asked.
        lineup: who takes part.
    """

    def __init__(
        self, stage: Stage, turn_s: int, question: Question = _ONE_URL, lineup: Lineup = HTTP1
    ) -> None:
        self._stage = stage
        self._turn_s = turn_s
        self._question = question
        self._lineup = lineup
        expected = {name: rival.expected_rps for name, rival in lineup.rivals.items()}
        self._expected_rps = _EXPECTED_RPS | expected

    def measure_round(self, name: str, connections: int, number: int) -> Round:
        """The next turn of a contestant."""
        result = self.play(name, connections, number)
        label = f", {self._question.label}" if self._question.label else ""
        log(
            f"  round {number}{label}, {connections} connections, {name}: {result.rate_rps:,.0f}/s,"
            f" {result.cpu_us:.1f} µs of processor time each"
        )
        return result

    def play(
        self, name: str, connections: int, number: int, act: Callable[[Observation], None] = look_on
    ) -> Round:
        """The same without a word of it; `act` is called with every look at the contestant."""
        stage, requests = replace(self._stage, act=act), int(self._expected_rps[name] * self._turn_s)
        question, lineup = self._question, self._lineup
        if name in lineup.engines:
            process = WORKER
            load = Load(
                requests=requests,
                concurrency=connections * lineup.streams,
                engine=lineup.engines[name],
                spec=question.spec,
            )
            turn = _play_oku(stage, load, question.counted_within)
        else:
            process = CLIENT
            effort = Effort(
                url=stage.target.url,
                connections=connections,
                seconds=self._turn_s,
                requests=requests,
                streams=lineup.streams,
                more_urls=question.more_urls,
            )
            turn = _play_rival(stage, lineup.rivals[name], effort)
        window = cut_window(turn.samples, _BEGIN * turn.sent, _END * turn.sent)
        self._expected_rps[name] = window.rate_rps
        cpu_s = window.measure_cpu_s(process)
        return Round(
            number=number,
            contestant=name,
            connections=connections,
            requests=turn.sent,
            rate_rps=round(window.rate_rps, 1),
            cpu_us=round(cpu_s / window.sent * 1e6, 2),
            cpu_share=round(cpu_s / window.length_s, 3),
            target_share=round(window.measure_cpu_s(TARGET) / window.length_s, 3),
        )


def _play_oku(stage: Stage, load: Load, counted_within: float) -> Turn:
    with open_data_dir(stage.folder) as data_dir:
        turn = play_oku(stage, data_dir, load, is_shown=True).turn
    check_sent(load.engine, turn.sent, load.requests, counted_within)
    return turn


def _play_rival(stage: Stage, rival: Rival, effort: Effort) -> Turn:
    program = rival.find()
    assert program is not None
    turn = stage.play(CLIENT, lambda account: rival.build(program, replace(effort, account=str(account))))
    if rival.is_script:
        check_sent(rival.program, turn.sent, effort.requests)
    return turn


def check_sent(name: str, sent: int, requests: int, counted_within: float = 0.0) -> None:
    """`BenchmarkError` unless a contestant has sent what it was asked for, as far as the target can tell."""
    if abs(sent - requests) > counted_within * requests:
        raise BenchmarkError(f"{name} sent {sent} of {requests} requests")


def find_missing(names: Iterable[str], rivals: Mapping[str, Rival] = RIVALS) -> dict[str, str]:
    """The rivals among them that are not there, and why; the log says so, too."""
    missing = {name: rivals[name].describe_missing() for name in names if rivals[name].find() is None}
    for reason in sorted(set(missing.values())):
        log(f"  left out: {reason}")
    return missing


def pick(rounds: Iterable[Round], name: str, connections: int, attribute: str) -> list[float]:
    """One figure of a contestant, round by round."""
    return [
        float(getattr(entry, attribute))
        for entry in sorted(rounds, key=lambda entry: entry.number)
        if entry.contestant == name and entry.connections == connections
    ]


def compare(rounds: Sequence[Round], one: str, other: str, connections: int, attribute: str) -> Spread:
    """The ratio of a figure of one contestant to that of another one."""
    return build_ratios(
        pick(rounds, one, connections, attribute), pick(rounds, other, connections, attribute)
    )
