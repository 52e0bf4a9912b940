"""The web application: finished episodes in a browser, from a run's streams or an archive. Reads only."""
