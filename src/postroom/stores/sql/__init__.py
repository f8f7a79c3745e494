"""What stores on SQL databases share. A dialect says only what its database does otherwise."""
