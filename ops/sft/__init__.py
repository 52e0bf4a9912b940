"""A warm start on other people's trajectories: their conversations read into a run, and trained on."""
