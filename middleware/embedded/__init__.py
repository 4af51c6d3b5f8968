"""Model servers inside this package: a real language model and a scripted one."""
