"""What the engines of HTTP share: requests, connections, checks and counts of responses."""
