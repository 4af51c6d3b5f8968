"""For tests of applications that use this package: the fixture `replay_upstream`, and what it is made of."""
