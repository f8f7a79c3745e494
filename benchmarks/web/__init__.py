"""The server under measure, and a client that costs little."""
