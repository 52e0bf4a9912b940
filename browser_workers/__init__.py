"""Browser workers: tasks in, trajectories out."""
