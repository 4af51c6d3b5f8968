"""A real uvicorn in a thread with its own event loop, for clients that need the test's own loop."""

from imagecall.middleware.testing.served import serve

__all__ = ["serve"]
