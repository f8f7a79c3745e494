"""A made-up month of mail, seeded: full plots for newcomers, known answers for tests."""
