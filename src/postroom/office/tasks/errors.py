"""What can be wrong with tasks and projects."""

from postroom.errors import Conflict, NotFound


class TaskNotFound(NotFound):
    """There is no task "{task}"."""

    code = "TASK_NOT_FOUND"


class ProjectNotFound(NotFound):
    """There is no project "{project}"."""

    code = "PROJECT_NOT_FOUND"


class CommentNotFound(NotFound):
    """There is no comment "{comment}"."""

    code = "COMMENT_NOT_FOUND"


class PrefixTaken(Conflict):
    """The prefix "{prefix}" belongs to another project. Choose another one."""

    code = "PREFIX_TAKEN"
