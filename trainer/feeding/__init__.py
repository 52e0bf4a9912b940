"""The feeder: which episodes are played, and when."""
