"""Pages that keep the agent out of a site: how they are recognised, and what becomes of the episodes that meet them."""
