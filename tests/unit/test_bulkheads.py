"""An error that nobody foresaw ends one item, by name, within three tries; the worker and its other slots go on."""
