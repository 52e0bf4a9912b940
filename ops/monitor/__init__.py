"""A run as it stands at this moment: state folded from its streams, alerts, and the ways to show them. Reads only."""
