"""MCP servers as picture makers: sessions, arguments, results."""
