"""How far a figure of a run can be trusted, and whether two runs differ: resampling, without a clock."""
