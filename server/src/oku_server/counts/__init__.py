"""What was served, by run, over all processes of a server."""
