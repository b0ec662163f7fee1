"""HTTP/1.1 as engines and scenarios speak it: addresses, TLS, answers, and why a request failed."""
