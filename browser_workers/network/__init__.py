"""What the pages of an episode may reach."""
