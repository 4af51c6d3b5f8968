"""What is kept of conversations: pictures, items, responses, each owner's apart."""
