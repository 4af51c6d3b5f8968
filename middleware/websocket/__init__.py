"""WebSocket mode of the Responses endpoint."""
