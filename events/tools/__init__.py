"""Hosted tools: what each one's declaration, arguments, items and events look like."""
