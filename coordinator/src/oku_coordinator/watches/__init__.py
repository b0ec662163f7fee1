"""Watches over runs and the installation: actions that no caller requests."""
