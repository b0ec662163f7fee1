"""The values of a spec's keys, as types that are parsed once."""
