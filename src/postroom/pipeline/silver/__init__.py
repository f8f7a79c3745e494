"""Silver: what it means. Every module is a transform from frame to frame, without any reading or writing."""
