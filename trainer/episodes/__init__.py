"""From judgements and chains to the samples of an iteration."""
