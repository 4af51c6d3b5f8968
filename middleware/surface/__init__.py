"""What clients may ask of stored responses: look up, resume, list, delete."""
