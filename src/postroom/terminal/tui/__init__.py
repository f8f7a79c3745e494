"""Views that stay on the screen and change as things happen."""
