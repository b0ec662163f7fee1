"""Marks tests that are run twice: the coordinator and its workers talk by a socket, or over a broker."""

import pytest

on_both_transports = pytest.mark.parametrize(
    "has_broker", [False, True], ids=["socket", "valkey"], indirect=True
)
