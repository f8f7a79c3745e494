"""Budgets: what was spent of something countable, what is reserved, and messages that wait for one."""
