"""What the quickstart makes on the spot: a tiny model, task files, and a warm start on demonstrations."""
