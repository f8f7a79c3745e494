"""The data pipeline: the ledger becomes history, traces, costs and insights, on Spark.

It reads stores and knows the kernel's model, never the office or an entrance. Importing this package imports
neither Spark nor Java; only `jobs` does, when a run begins.
"""
