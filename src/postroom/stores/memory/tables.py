"""Everything the memory store keeps, with the one journal that can take it back."""

from postroom.stores.memory.audit import MemoryAudit
from postroom.stores.memory.budgets import MemoryBudgets
from postroom.stores.memory.chain import Chain
from postroom.stores.memory.documents import Documents
from postroom.stores.memory.journal import Journal
from postroom.stores.memory.messages import MemoryMessages
from postroom.stores.memory.notes import Notes
from postroom.stores.memory.queues import MemoryQueues


class Tables:
    def __init__(self) -> None:
        self.journal = Journal()
        self.places = MemoryQueues(self.journal)
        self.messages = MemoryMessages(self.journal)
        self.notes = Notes(self.journal)
        self.documents = Documents(self.journal)
        self.filing = MemoryAudit(self.journal)
        self.accounts = MemoryBudgets(self.journal)
        self.chain = Chain(self.journal)
