"""One case of leases: a goal, and how to find out whether a checkout reaches it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.stacks.account import Account
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.counting_server import Behaviour
from oku_benchmarks.stacks.counting_target import CountingTarget
from oku_benchmarks.stacks.real_stack import RealStack, RunCommand, open_stack


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a case with one checkout.

    Attributes:
        text: the figures.
        is_met: whether they are as good as the goal.
    """

    text: str
    is_met: bool


@dataclass(frozen=True, kw_only=True)
class LeaseCase:
    """A case.

    Attributes:
        text: what happens in it.
        goal: what must come of it.
        measure: plays it with a checkout, in a folder of its own.
        is_long: whether it is only played when it is named.
        is_simulated: whether its workers are simulated, and speak only the messages of this checkout.
    """

    text: str
    goal: str
    measure: Callable[[Checkout, Path], Finding]
    is_long: bool = False
    is_simulated: bool = False


@dataclass(frozen=True, kw_only=True)
class Site:
    """A stack whose coordinator runs, and the target of its runs."""

    stack: RealStack
    target: CountingTarget

    def start(self, name: str, requests: int, concurrency: int, *flags: str) -> RunCommand:
        """Start `oku run` against the target, under a name for its files."""
        return self.stack.submit(
            name, "run", "--url", self.target.url, "--requests", str(requests), "--concurrency",
            str(concurrency), *flags,
        )  # fmt: skip

    def finish(self, command: RunCommand, timeout_s: float) -> Account:
        """Wait for the end of the only run of the target; `BenchmarkError` unless its account balances."""
        account = command.wait(timeout_s)
        served = self.target.read_last().received
        ok, most = account.outcomes["ok"], account.accounted + account.resent_at_most
        if account.state != "completed" or account.accounted != account.requests:
            raise BenchmarkError(
                f"the run is {account.state} with {account.accounted:,} of {account.requests:,} accounted"
            )
        if not ok <= served <= most:
            raise BenchmarkError(f"{served:,} were served, which is not between {ok:,} and {most:,}")
        return account


@contextmanager
def open_site(
    checkout: Checkout, folder: Path, behaviour: Behaviour, flags: tuple[str, ...] = ()
) -> Iterator[Site]:
    """A site without workers.

    Args:
        checkout: whose stack.
        folder: for all files; must be there.
        behaviour: of the target.
        flags: further ones of the coordinator.
    """
    with (
        CountingTarget(folder / "target", behaviour) as target,
        open_stack(checkout, folder / "stack") as stack,
    ):
        stack.start_coordinator(flags=flags)
        yield Site(stack=stack, target=target)
