"""Responses that go on without their client, and end on whichever worker they run."""
