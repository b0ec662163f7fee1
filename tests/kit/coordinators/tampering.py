"""Statements that make a ledger contradict itself: whoever checks it notices each of them.

They fit a run `r1` of 100 requests whose first lease is closed, and whose third, from index 20 on, has a
checkpoint.
"""

TAMPERINGS = {
    "a slice is gone": "DELETE FROM slices WHERE state = 'pending'",
    "an accounted slice is gone": "DELETE FROM slices WHERE start = 0",
    "a slice is longer": "UPDATE slices SET stop = stop + 1 WHERE start = 0",
    "a slice is shorter": "UPDATE slices SET stop = stop - 1 WHERE state = 'pending'",
    "a slice ends before it starts": "UPDATE slices SET stop = -5 WHERE start = 0",
    "a slice was begun twice": "INSERT INTO slices VALUES ('r1', 15, 20, 'pending')",
    "a slice is pending instead of accounted": "UPDATE slices SET state = 'pending' WHERE start = 0",
    "a slice is in no state": "UPDATE slices SET state = 'lost' WHERE start = 0",
    "a worker has another count": "UPDATE workers SET requests = 9",
    "a lease has another range": "UPDATE leases SET start = start - 1 WHERE start = 20",
    "a lease was reopened": "UPDATE leases SET state = 'active' WHERE start = 0",
    "an open lease has done more": "UPDATE leases SET done = 6 WHERE start = 20",
    "an open lease has done less": "UPDATE leases SET done = 4 WHERE start = 20",
    "an open lease has another hole": "UPDATE leases SET in_flight = '[2, 3]' WHERE start = 20",
    "a hole lies beyond what is done": "UPDATE leases SET in_flight = '[7]' WHERE start = 20",
    "an open lease ends earlier": 'UPDATE leases SET "end" = 8 WHERE start = 20',
    "an open lease has other outcomes": "UPDATE leases SET outcomes = '[5,0,0,0,0,0,0,0]' WHERE start = 20",
    "a hole is too large": "UPDATE leases SET in_flight = '[9999999999999999999]' WHERE start = 20",
    "a lease cannot be read": "UPDATE leases SET in_flight = 'none' WHERE start = 20",
    "a part is gone": "DELETE FROM lease_parts",
    "a part has another count": "UPDATE lease_parts SET requests = 5",
    "a second is gone": "DELETE FROM series",
    "a second has another outcome": "UPDATE series SET outcomes = '[13,0,1,0,0,0,0,0]'",
    "a second cannot be read": "UPDATE series SET outcomes = '[14'",
    "the run is larger": """UPDATE specs SET spec = replace(spec, '"requests":100', '"requests":101')""",
}
