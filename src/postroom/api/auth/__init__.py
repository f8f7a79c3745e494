"""Who may come in: names, origins, tokens, logins, and what happens to those who may not."""
