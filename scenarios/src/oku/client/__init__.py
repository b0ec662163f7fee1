"""What sends the requests of scenarios: HTTP/1.1 over connections that are kept."""
