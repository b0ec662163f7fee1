"""Which idle connection takes the next request, and when the others are closed."""

from oku_core.http_client.idle_pool import KEEPALIVE_S, IdlePool

SECOND_NS = 10**9


class Idle:
    """A connection without a request."""

    def __init__(self, *, is_usable: bool = True) -> None:
        self.is_usable = is_usable
        self.is_closed = False

    def close(self) -> None:
        """End."""
        self.is_closed = True


def build_pool(*connections: Idle) -> IdlePool[Idle]:
    """A pool in which one connection became idle each second."""
    pool: IdlePool[Idle] = IdlePool()
    for number, connection in enumerate(connections):
        pool.rest(connection, number * SECOND_NS)
    return pool


def test_the_connection_that_was_used_last_is_used_first() -> None:
    """The server has had the least time to close it; one that is closed is passed over."""
    connections = [Idle(), Idle(is_usable=False), Idle(), Idle(is_usable=False)]
    pool = build_pool(*connections)
    assert [pool.pop(4 * SECOND_NS) for _ in range(3)] == [connections[2], connections[0], None]
    assert [each.is_closed for each in connections] == [False, True, False, True]


def test_a_connection_that_was_idle_for_long_is_closed() -> None:
    """Its server may be about to close it, even if nothing has swept the pool meanwhile."""
    connections = [Idle() for _ in range(4)]
    pool, expiry_ns = build_pool(*connections), int(KEEPALIVE_S * 1e9)
    pool.close_expired(expiry_ns + SECOND_NS)
    assert [each.is_closed for each in connections] == [True, True, False, False]
    assert pool.pop(expiry_ns + 3 * SECOND_NS) is None
    assert all(each.is_closed for each in connections)


def test_the_oldest_makes_room() -> None:
    """One that was discarded is not closed by its pool."""
    connections = [Idle() for _ in range(3)]
    pool = build_pool(*connections)
    pool.discard(connections[0])
    pool.close_oldest()
    assert [each.is_closed for each in connections] == [False, True, False]
    assert len(pool) == 1


def test_a_pool_that_is_closed_keeps_nothing() -> None:
    """A request that was under way may end later."""
    idle, busy = Idle(), Idle()
    pool = build_pool(idle)
    pool.close()
    pool.close_oldest()
    pool.rest(busy, 0)
    assert (idle.is_closed, busy.is_closed, len(pool)) == (True, True, 0)
