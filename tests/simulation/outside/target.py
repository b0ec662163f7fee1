"""The target of the requests: it answers each index as the seed wants it, and remembers what it saw.

What becomes of an index depends on the seed and the index alone, so the account of a run can be compared with
the answers of exactly those indices that it covers.
"""

import random
from collections import Counter
from itertools import accumulate
from typing import NamedTuple

from oku_core.accounting.outcome import OUTCOMES

OK, UNEXPECTED_STATUS, TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR = range(len(OUTCOMES))
_SHARES = {
    OK: 0.9, UNEXPECTED_STATUS: 0.04, TIMEOUT: 0.01,
    CONNECT_ERROR: 0.02, DISCONNECTED: 0.02, PROTOCOL_ERROR: 0.01,
}  # fmt: skip


class Answer(NamedTuple):
    """What becomes of a request.

    Attributes:
        outcome: as an index of `OUTCOMES`.
        status: of the response, if there is one.
        latency_s: how long it takes at the pace of a worker of speed 1.
        received: bytes of the body.
    """

    outcome: int
    status: int
    latency_s: float
    received: int


class Target:
    """Answers the requests of one run.

    Args:
        requests: how many indices there are.
        latency_s: the median of the latencies.
        slow_share: the share of the answers that take 100 times as long.
        chance: draws the answers.
    """

    def __init__(self, requests: int, latency_s: float, slow_share: float, chance: random.Random) -> None:
        outcomes = chance.choices(tuple(_SHARES), tuple(_SHARES.values()), k=requests)
        self.answers = [
            Answer(
                outcome,
                200 if outcome == OK else chance.choice((404, 500, 503)),
                latency_s * chance.lognormvariate(0.0, 0.5) * (100 if chance.random() < slow_share else 1),
                chance.randrange(2000),
            )
            for outcome in outcomes
        ]
        self.seen: Counter[int] = Counter()
        """How often each index came."""
        self.sent = 0
        """How many requests came in all."""
        self._sums = [
            [0, *accumulate(int(answer.outcome == outcome) for answer in self.answers)]
            for outcome in range(len(OUTCOMES))
        ]

    def take(self, index: int) -> Answer:
        """A worker sends a request; what does not connect is not seen."""
        answer = self.answers[index]
        if answer.outcome != CONNECT_ERROR:
            self.seen[index] += 1
            self.sent += 1
        return answer

    def sum_outcomes(self, start: int, stop: int) -> list[int]:
        """What the outcomes of the indices `[start, stop)` are."""
        return [sums[stop] - sums[start] for sums in self._sums]
