"""What may stand under a key of a spec, as types that are parsed once."""
