"""Tasks over the shop: templates of three difficulties, each with programmatic checks and a scripted solution."""
