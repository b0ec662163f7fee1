"""Feeds, from which engines take requests: of a closed run, a run with a highest rate, and an open run."""
