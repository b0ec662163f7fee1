from oku_core.messaging.lease import build_lease_id
from oku_core.messaging.process_ends import MOST_RECORDED_LEASES, FlightRecord
from oku_core.messaging.progress import Progress


def test_a_lease_is_known_by_what_was_written_of_it() -> None:
    """One that is not in the record was never begun."""
    record = FlightRecord(incarnation="b1", reached={"r1.000000001.aa": 7, "r1.000000002.bb": 0})
    assert record.find_reached("r1.000000001.aa") == 7
    assert record.find_reached("r1.000000002.bb") == 0
    assert record.find_reached("r1.000000003.cc") == 0
    # Nothing is said of a lease that may have been forgotten.
    record = FlightRecord(
        incarnation="b1", reached={build_lease_id("r1", 2): 7}, forgotten_run="r1", forgotten_number=4
    )
    assert record.find_reached(build_lease_id("r1", 5)) == 0
    assert record.find_reached(build_lease_id("r1", 4)) is None
    assert record.find_reached(build_lease_id("r1", 1)) is None
    assert record.find_reached(build_lease_id("r2", 9)) is None
    assert record.find_reached("nothing") is None
    assert record.find_reached(next(iter(record.reached))) == 7


def test_progress_with_a_record_that_cannot_be_is_refused() -> None:
    """Its figures are bounded."""
    good = FlightRecord(incarnation="b1", reached={"r1.000000001.aa": 7})
    assert Progress(worker="w1", incarnation="b2", at=1.0, found=[good]).find_fault() is None
    for bad, word in (
        ([FlightRecord(incarnation="b1", reached={"a": -1})], "less than nothing"),
        (
            [FlightRecord(incarnation="b1", reached={str(n): 0 for n in range(MOST_RECORDED_LEASES + 1)})],
            "more",
        ),
        ([good] * 17, "16 records"),
    ):
        fault = Progress(worker="w1", incarnation="b2", at=1.0, found=bad).find_fault()
        assert fault is not None
        assert word in fault
