"""What leases must do for a load that is as full, even and cheap to interrupt as was asked for."""
