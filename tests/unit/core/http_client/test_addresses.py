"""In which order the addresses of a name are tried, by a clock that the test has."""

import socket
from collections import Counter

import pytest
from aiohappyeyeballs.types import AddrInfoType

from oku_core.http_client.addresses import FAILED_FOR_S, AddressBook


def build(name: str) -> AddrInfoType:
    """One address."""
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (name, 80))


A, B, C = build("a"), build("b"), build("c")


@pytest.fixture
def book() -> AddressBook:
    """Three addresses, one of which was found twice."""
    book = AddressBook()
    book.learn([A, B, A, C])
    return book


def test_a_name_that_nobody_has_looked_up_has_no_address() -> None:
    """There is nothing to connect to then."""
    assert AddressBook().is_empty


def test_each_address_is_first_in_its_turn(book: AddressBook) -> None:
    """All others come after it."""
    orders = [book.order(0.0) for _ in range(30)]
    assert Counter(order[0] for order in orders) == {A: 10, B: 10, C: 10}
    assert all(set(order) == {A, B, C} and len(order) == 3 for order in orders)


def test_what_was_passed_over_is_last_for_a_while(book: AddressBook) -> None:
    """The others share its turns; after that it has its own again."""
    book.record([A, B], B, 100.0)
    orders = [book.order(100.0 + FAILED_FOR_S - 0.1) for _ in range(30)]
    assert Counter(order[0] for order in orders) == {B: 15, C: 15}
    assert {order[-1] for order in orders} == {A}
    later = [book.order(100.0 + FAILED_FOR_S) for _ in range(30)]
    assert Counter(order[0] for order in later) == {A: 10, B: 10, C: 10}


def test_what_is_reached_is_not_last_any_more(book: AddressBook) -> None:
    """Nobody has to wait for the time to pass."""
    book.record([A, B], B, 100.0)
    book.record([A], A, 101.0)
    assert {book.order(101.0)[0] for _ in range(3)} == {A, B, C}


def test_what_was_not_tried_is_not_judged(book: AddressBook) -> None:
    """It comes after who was reached."""
    book.record([A], A, 100.0)
    assert {book.order(100.0)[0] for _ in range(3)} == {A, B, C}


def test_when_none_is_reached_all_go_on_in_turn(book: AddressBook) -> None:
    """One of them may be back."""
    book.record([A, B, C], None, 100.0)
    assert Counter(book.order(100.0)[0] for _ in range(30)) == {A: 10, B: 10, C: 10}


def test_a_lookup_replaces_what_was_known(book: AddressBook) -> None:
    """What is gone is forgotten, what is still there keeps its judgement."""
    book.record([A, B, C], C, 100.0)
    book.learn([B, C])
    assert [book.order(100.0) for _ in range(2)] == [[C, B], [C, B]]
    book.record([A], None, 100.0)
    book.learn([A, B, C])
    assert [book.order(100.0)[-1] for _ in range(3)] == [B, B, B]
