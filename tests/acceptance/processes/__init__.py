"""An office of several real processes on one database server, any of which may be killed."""
