"""What is done about the wire: the ASGI middleware, its backends, and the programs around it."""
