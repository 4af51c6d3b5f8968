"""What the wire means: the Responses API translated without any I/O.

Nothing in this package waits, reads a clock, draws a random number or logs. Bytes and
results go in, a list of `actions` comes out; `imagecall.middleware` performs them.
"""
