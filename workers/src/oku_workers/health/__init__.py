"""The threads that show that a worker lives and end it when it is stuck."""
