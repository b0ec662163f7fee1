"""Scripts that `./task bench` runs as contestants, each in a process of its own."""
