"""Reads OpenAPI documents, and makes requests that fit them."""
