"""Finds the coordinator of a release in a cluster, through the kubectl of the user."""
