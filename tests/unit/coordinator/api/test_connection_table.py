import pytest

from oku_coordinator.api.connection_table import (
    ConnectionLimits,
    ConnectionPhase,
    ConnectionTable,
    DropReason,
    find_client,
)

LIMITS = ConnectionLimits(most=4, most_per_address=3, longest_head_bytes=100)


class Peer:
    """A connection that knows why it was closed."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.reason: DropReason | None = None

    def drop(self, reason: DropReason) -> None:
        """It is closed."""
        assert self.reason is None
        self.reason = reason


class World:
    """A table and its clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.table = ConnectionTable(LIMITS, lambda: self.now_s)

    def connect(self, origin: str = "a") -> Peer:
        """A new connection that is admitted."""
        peer = Peer(origin)
        assert self.table.admit(peer)
        return peer

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds
        self.table.drop_overdue()


@pytest.fixture
def world() -> World:
    """Nobody is connected."""
    return World()


def test_of_too_many_from_one_address_the_longest_waiting_makes_room(world: World) -> None:
    """No connection from elsewhere makes room."""
    other = world.connect("b")
    peers = [world.connect() for _ in range(5)]
    assert [peer.reason for peer in peers] == [DropReason.CROWDED] * 2 + [None] * 3
    assert other.reason is None
    assert len(world.table) == 4


def test_of_too_many_in_all_the_longest_waiting_makes_room(world: World) -> None:
    """Its origin does not matter: a new caller always gets in."""
    peers = [world.connect(origin) for origin in "abcdefg"]
    assert [peer.reason is None for peer in peers] == [False] * 3 + [True] * 4


def test_a_busy_connection_is_never_closed_to_make_room(world: World) -> None:
    """The length of a request is no reason either; when all are busy a new one is refused."""
    peers = [world.connect() for _ in range(3)]
    for peer in peers:
        world.table.enter(peer, ConnectionPhase.BUSY)
    world.pass_s(1_000_000)
    assert not world.table.admit(Peer("a"))
    assert [peer.reason for peer in peers] == [None] * 3
    world.table.enter(peers[1], ConnectionPhase.IDLE)
    world.connect()
    assert peers[1].reason == DropReason.CROWDED


def test_one_that_was_answered_lately_stays_longer(world: World) -> None:
    """Waiting counts from the last answer."""
    first, second, third = (world.connect() for _ in range(3))
    world.table.enter(first, ConnectionPhase.BUSY)
    world.table.enter(first, ConnectionPhase.IDLE)
    world.connect()
    assert [peer.reason for peer in (first, second, third)] == [None, DropReason.CROWDED, None]


@pytest.mark.parametrize(
    ("phase", "patience_s"),
    [
        (ConnectionPhase.HEAD, LIMITS.head_s),
        (ConnectionPhase.IDLE, LIMITS.idle_s),
        (ConnectionPhase.CLOSING, LIMITS.closing_s),
    ],
)
def test_waiting_has_an_end(world: World, phase: ConnectionPhase, patience_s: float) -> None:
    """Each phase has its own limit."""
    peer = world.connect()
    world.table.enter(peer, phase)
    world.pass_s(patience_s - 0.1)
    assert peer.reason is None
    world.pass_s(0.2)
    assert peer.reason == DropReason.OVERDUE
    assert len(world.table) == 0


def test_a_head_that_drips_has_no_more_time(world: World) -> None:
    """The time counts from its first byte, for a second request as well."""
    peer = world.connect()
    world.table.enter(peer, ConnectionPhase.BUSY)
    world.table.enter(peer, ConnectionPhase.IDLE)
    world.pass_s(LIMITS.idle_s - 1)
    for _ in range(9):
        world.table.record_partial_head(peer, 1)
        assert peer.reason is None
        world.pass_s(LIMITS.head_s / 8.5)
    assert peer.reason == DropReason.OVERDUE


def test_one_that_has_left_frees_its_place(world: World) -> None:
    """One that was never admitted can leave, too."""
    peers = [world.connect() for _ in range(3)]
    for peer in (*peers, Peer("z")):
        world.table.remove(peer)
    assert len(world.table) == 0
    assert [world.connect().reason for _ in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_the_addresses_of_one_network_are_one_caller(host: str, origin: str) -> None:
    """This is for IPv6, where everybody has billions of addresses."""
    assert find_client(host) == origin
