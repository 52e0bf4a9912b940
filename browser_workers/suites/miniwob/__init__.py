"""MiniWoB++: the pages of the `miniwob` package, played one problem at a time."""
