"""How an open run is dealt: its schedule is cut into waves ahead of time, and each wave into lanes."""
