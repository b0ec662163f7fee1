"""Where answers wait that are ok until they are counted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from oku_workers.engines.counting import CountAnswers
from oku_workers.speedups.extension import IS_COMPILED

if IS_COMPILED:
    from oku_workers.speedups import _speedups


class PythonAnswerBatch:
    """What is compiled counts the answers of one turn of the event loop together; here none waits.

    Args:
        call_soon: has something called at the end of a turn of the event loop.
        count_answers: counts answers that have the same tally and the same status.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], count_answers: CountAnswers
    ) -> None:
        """There is nothing to keep of them."""

    def count(self) -> None:
        """Count what waits."""


AnswerBatch = PythonAnswerBatch
if not TYPE_CHECKING and IS_COMPILED:
    AnswerBatch = _speedups.AnswerBatch
