"""When each request of a run is due: stages, schedules, waves and lanes. Pure arithmetic, without a clock."""
