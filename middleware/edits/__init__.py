"""Pictures to edit, from wherever they are, and pictures written to disk."""
