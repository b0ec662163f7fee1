"""A coordinator elsewhere: how it is found, called and followed."""
