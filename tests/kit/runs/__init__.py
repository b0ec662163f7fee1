"""Real local runs, specs, and what every run must end with."""
