"""A user of Locust as the host sees it, and what a locustfile sees of the host: `self.oku`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gevent

from oku_core.data.row_reader import RowReader

if TYPE_CHECKING:
    from locust import User

    from oku.host_session import Iteration

_STATE = "_oku_state"


@dataclass(eq=False, slots=True)
class UserState:
    """What the host knows of one user.

    Attributes:
        user: of Locust; None where a user could not be made.
        greenlet: it runs in.
        iteration: the one that is under way; None between two.
        ended: how many it has ended.
        is_idle: whether it waits for an iteration.
        is_woken: whether it was told that there is one, and does not run yet.
        is_cut: whether its iteration is being cut off.
        is_dismissed: whether it is to end.
        raised: the last exception of a task, which Locust tells of once more.
        given_up: how many sets of tasks in a row it has given up before their first task.
        gave_up_after: how many iterations it had ended by then.
    """

    user: "User | None" = None
    greenlet: gevent.Greenlet | None = None
    iteration: "Iteration | None" = None
    ended: int = 0
    is_idle: bool = False
    is_woken: bool = False
    is_cut: bool = False
    is_dismissed: bool = False
    raised: BaseException | None = None
    given_up: int = 0
    gave_up_after: int = 0

    def give_up(self) -> int:
        """Count a set of tasks that is given up before its first task; return how many in a row."""
        if self.gave_up_after != self.ended:
            self.given_up, self.gave_up_after = 0, self.ended
        self.given_up += 1
        return self.given_up


def find_state(user: "User") -> UserState:
    """The state of a user; made with the first look."""
    state: UserState | None = user.__dict__.get(_STATE)
    if state is None:
        state = user.__dict__[_STATE] = UserState(user)
    return state


class NamedRows:
    """The rows of the data of a run, by the names of their columns.

    Args:
        reader: reads these columns, as text.
        columns: their names.
    """

    def __init__(self, reader: RowReader, columns: Sequence[str]) -> None:
        self._reader = reader
        self._columns = columns

    def read(self, index: int) -> dict[str, str]:
        """Read the row of an index."""
        values = self._reader.read(index)
        return {column: value.decode() for column, value in zip(self._columns, values, strict=True)}


@dataclass(frozen=True)
class SharedData:
    """What all users of a run see.

    Attributes:
        rows: of the run; None if it has no data.
        setup_data: what the setup of the run returned.
    """

    rows: NamedRows | None = None
    setup_data: Any = None


@dataclass(frozen=True, slots=True)
class OkuView:
    """What `self.oku` is in users and task sets.

    Attributes:
        data: of the run.
        state: of the user whose it is.
    """

    data: SharedData = field(repr=False)
    state: UserState = field(repr=False)

    @property
    def index(self) -> int:
        """The index of the iteration that is under way, which no other one of the run has.

        Raises:
            RuntimeError: none is: this is no task.
        """
        if self.state.iteration is None:
            raise RuntimeError("self.oku.index: there is an index in tasks only, not in on_start or on_stop")
        return self.state.iteration.index

    @property
    def row(self) -> dict[str, str]:
        """The row of the data of the run for this index, by the names of its columns.

        Raises:
            RuntimeError: there is no data, or no index.
        """
        if self.data.rows is None:
            raise RuntimeError("self.oku.row: the run has no data; give it some with --data")
        return self.data.rows.read(self.index)

    @property
    def setup_data(self) -> Any:
        """What the setup of the run returned; None without one."""
        return self.data.setup_data
