"""What the simulated processes run on: time, scheduling, clocks and disks."""
