"""What a worker says of itself, and what ends it when it is of no use."""
