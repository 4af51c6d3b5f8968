"""Picture makers: the protocol, and one file for each real one."""
