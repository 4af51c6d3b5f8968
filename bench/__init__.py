"""What a stream costs: the middleware beside its peers, in one run. Start with `python -m bench`."""
