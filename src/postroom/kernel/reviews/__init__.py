"""Human review: what a person is shown, what they may decide, and what happens when nobody does in time."""
