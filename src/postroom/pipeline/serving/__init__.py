"""Answers from the lake without a JVM: insights, traces, search and the report."""
