"""The OpenAI Images API in the dialects of the servers people run."""
