"""Specs from what people have: a curl command, the HAR file of a browser, an OpenAPI document."""
