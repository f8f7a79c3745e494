"""Parts of the pipeline's benchmark."""
