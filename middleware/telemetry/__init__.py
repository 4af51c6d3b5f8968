"""What operators see of responses, turns and pictures: spans, measurements, one line in the log."""
