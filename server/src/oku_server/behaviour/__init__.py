"""What a request gets: its delay, its fault, its body."""
