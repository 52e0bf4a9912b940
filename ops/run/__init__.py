"""Opens a run: its folder, its streams, its logs, and the connection of one role."""
