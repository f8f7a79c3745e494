"""The office: agents, teams and rooms on top of the queue. It knows no database, no HTTP and no screen."""
