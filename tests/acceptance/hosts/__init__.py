"""An office on hosts of their own: network namespaces that share a database server and an object store."""
