"""What becomes of leased requests: taken in, given back, taken back, or accounted for as unsent."""
