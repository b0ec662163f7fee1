"""The target of the requests: it answers each index as the seed wants it, and remembers what it saw.

In open runs an index is here the place in the ledger.

What becomes of an index depends on the seed and the index alone, so the account of a run can be compared with
the answers of exactly those indices that it covers.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from oku_core.accounting.outcome import OUTCOMES

(
    OK, UNEXPECTED_STATUS, TIMEOUT, CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR, NOT_SENT, LOST, FAILED_CHECK,
    EXCEPTION,
) = range(len(OUTCOMES))  # fmt: skip
_SHARES = {
    OK: 0.89, UNEXPECTED_STATUS: 0.04, FAILED_CHECK: 0.01, TIMEOUT: 0.01,
    CONNECT_ERROR: 0.02, DISCONNECTED: 0.02, PROTOCOL_ERROR: 0.01,
}  # fmt: skip


_SHARES_OF_ITERATIONS = {OK: 0.9, FAILED_CHECK: 0.04, EXCEPTION: 0.03, TIMEOUT: 0.03}
_MOST_INNER = 4


def count_seen(outcomes: Sequence[int]) -> int:
    """How many of the requests of an account a target has certainly seen."""
    return sum(outcomes) - sum(outcomes[unseen] for unseen in (CONNECT_ERROR, NOT_SENT, LOST))


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
        latency_s: the median of the latencies.
        slow_share: the share of the answers that take 100 times as long.
        chance: draws the answers.
        is_user_code: whether the indices are iterations, which make requests of their own.

    Attributes:
        seen: how often each index came.
        sent: how many requests came in all.
        given_back: how many requests that had come were given back, by lease.
        inner: how many requests iterations have made, by name, whatever became of the iterations.
    """

    def __init__(
        self, latency_s: float, slow_share: float, chance: random.Random, *, is_user_code: bool = False
    ) -> None:
        self._shares = _SHARES_OF_ITERATIONS if is_user_code else _SHARES
        self.inner: Counter[str] = Counter()
        self.given_back: Counter[str] = Counter()
        self._latency_s = latency_s
        self._slow_share = slow_share
        self._chance = chance
        self._answers: list[Answer] = []
        self._sums = [[0] for _ in OUTCOMES]
        self.seen: Counter[int] = Counter()
        self.sent = 0

    def find_answer(self, index: int) -> Answer:
        """What becomes of an index."""
        self._draw(index + 1)
        return self._answers[index]

    def take(self, index: int) -> Answer:
        """A worker sends a request; what does not connect is not seen."""
        answer = self.find_answer(index)
        if answer.outcome != CONNECT_ERROR:
            self.seen[index] += 1
            self.sent += 1
        return answer

    def has_seen(self, index: int) -> bool:
        """Whether an index came, as far as it could."""
        return self.seen[index] > 0 or self.find_answer(index).outcome == CONNECT_ERROR

    def sum_outcomes(self, start: int, stop: int) -> list[int]:
        """What the outcomes of the indices `[start, stop)` are."""
        self._draw(stop)
        return [sums[stop] - sums[start] for sums in self._sums]

    def list_inner(self, index: int) -> list[str]:
        """The names of the requests that an iteration makes: one or several."""
        return [f"step {number}" for number in range(1 + index % _MOST_INNER)]

    def _draw(self, stop: int) -> None:
        """Draw the answers to the indices below `stop`, in their order: who asks first changes nothing."""
        while len(self._answers) < stop:
            chance = self._chance
            outcome = chance.choices(tuple(self._shares), tuple(self._shares.values()))[0]
            slow = 100 if chance.random() < self._slow_share else 1
            answer = Answer(
                outcome,
                200 if outcome == OK else chance.choice((404, 500, 503)),
                self._latency_s * chance.lognormvariate(0.0, 0.5) * slow,
                chance.randrange(2000),
            )
            self._answers.append(answer)
            for number, sums in enumerate(self._sums):
                sums.append(sums[-1] + (number == outcome))
