"""What tests of scenarios use."""
