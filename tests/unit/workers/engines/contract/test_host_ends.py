import signal

from oku_core.messaging.process_ends import LONGEST_HOST_END, MOST_HOST_ENDS, HostEndReason
from oku_core.messaging.progress import Progress
from oku_workers.engines.contract.user_code_host import REPORTED_S, HostEnds, ProcessEnd, explain_end

SAID = ProcessEnd(HostEndReason.MEMORY_LIMIT, "it got no more memory")


def test_each_end_has_its_reason() -> None:
    """The kernel's reason overrides what the process said before."""
    cases = {
        (0, False, None): (HostEndReason.EXITED, "it exited with code 0"),
        (7, False, None): (HostEndReason.EXITED, "it exited with code 7"),
        (137, True, None): (HostEndReason.EXITED, "it exited with code 137"),
        (1, False, SAID): SAID,
        (-signal.SIGKILL, True, None): (
            HostEndReason.OUT_OF_MEMORY, "the kernel killed it for lack of memory (SIGKILL)",
        ),
        (-signal.SIGKILL, False, SAID): (HostEndReason.KILLED, "it was killed by a signal (SIGKILL)"),
        (-signal.SIGTERM, True, None): (HostEndReason.KILLED, "it was killed by a signal (SIGTERM)"),
        (-signal.SIGSEGV, True, None): (HostEndReason.CRASHED, "it crashed (SIGSEGV)"),
        (-signal.SIGABRT, False, None): (HostEndReason.CRASHED, "it crashed (SIGABRT)"),
        (-signal.SIGRTMIN - 1, False, None): (
            HostEndReason.KILLED, f"it was killed by a signal (signal {signal.SIGRTMIN + 1})",
        ),
    }  # fmt: skip
    found = {
        (code, out_of_memory, word): explain_end(code, out_of_memory=out_of_memory, last_word=word)
        for code, out_of_memory, word in cases
    }
    assert found == cases


def test_an_end_is_reported_for_a_while_and_fits_into_a_message() -> None:
    """Progress may be lost; each has a number, by which it is known again."""
    now = 100.0
    ends = HostEnds(lambda: now)
    ends.record("r1", SAID, 3)
    now += REPORTED_S - 1
    ends.record("r2", SAID, 0)
    assert [(end.run, end.number, end.requests) for end in ends.list_latest()] == [("r1", 1, 3), ("r2", 2, 0)]
    now += 1
    assert [end.number for end in ends.list_latest()] == [2]
    now += REPORTED_S
    assert ends.list_latest() == []
    # Ends fit into a message. This holds however often user code ends its process, and whatever it prints.
    ends = HostEnds()
    for number in range(3 * MOST_HOST_ENDS):
        ends.record("r1", ProcessEnd(HostEndReason.EXITED, f"{number}\n\t{'x' * 1000}"), number)
    told = ends.list_latest()
    assert [end.number for end in told] == list(range(2 * MOST_HOST_ENDS + 1, 3 * MOST_HOST_ENDS + 1))
    assert {len(end.text) for end in told} == {LONGEST_HOST_END}
    assert Progress(worker="w", incarnation="b", at=0.0, host_ends=told).find_fault() is None
