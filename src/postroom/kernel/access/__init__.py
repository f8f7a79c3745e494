"""Who may do what: permissions and roles, API keys, grants and ACLs of places, trust between scopes."""
