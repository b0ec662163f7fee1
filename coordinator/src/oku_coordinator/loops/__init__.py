"""What is done again and again: a round of the main loop, a tick, and what each message of a worker needs."""
