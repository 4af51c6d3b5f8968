"""What the offline picture maker draws with: words, landscapes, figures."""
