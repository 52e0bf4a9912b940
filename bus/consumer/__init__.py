"""The consumer API: typed streams of a run for anyone outside its loop. Use it as `from bus import connect`."""
