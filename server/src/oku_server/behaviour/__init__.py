"""What each request gets: its delay, its fault and its body."""
