"""What every service is: the use cases of one noun, each an asynchronous method that a caller may ask for."""


class UseCases:
    """Public asynchronous methods of these, and nothing else, can also be asked for by another process."""
