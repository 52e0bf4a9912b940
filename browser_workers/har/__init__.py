"""Records of what an episode's pages sent and got (HAR 1.2): bounded, and without secrets."""
