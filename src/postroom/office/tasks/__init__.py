"""Tasks, projects and comments: what is to be done, by whom, and how far it is."""

from postroom.office.tasks.board import Board
from postroom.office.tasks.model import Comment, Project, Status, Task

__all__ = ["Board", "Comment", "Project", "Status", "Task"]
