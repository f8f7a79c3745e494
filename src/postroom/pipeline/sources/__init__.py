"""Where rows come from, and the `postroom` data source for anybody's Spark job."""
