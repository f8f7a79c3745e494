"""Fakes of the three agent programs, event for event as recorded from the real ones.

What a fake does is told by words in the variable FAKE; what it was called with
is kept in the folder FAKE_STATE.
"""
