"""The proof that no accepted message is lost: power cuts, broken disks, killed processes, random walks."""
