"""HTTP as engines and scenarios speak it: addresses, TLS, answers, and why a request failed."""
