"""What stores with several writers say when writers meet, and when an answer of the server is missing."""


class MustWait(Exception):
    """A transaction wants to change what others remember, and begins anew when they have ended."""


class Overtaken(Exception):
    """Somebody else has changed the same thing meanwhile; tried again, that is seen."""


MESSAGE_OVERTAKEN = "somebody else has changed the same message in this moment"


class CommitUnknown(Exception):
    """The connection was lost during a commit, and the server cannot say what became of it."""
