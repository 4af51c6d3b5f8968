"""What the commands show: an answer as it grows, a picture, a timeline."""
