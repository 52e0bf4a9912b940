"""`millrace new`: a small project to begin one's own from, with a model that is made on the spot."""
