"""What several kinds of tests share: real processes to drive, servers to ask, faults to inject."""
