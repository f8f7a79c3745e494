"""Proof that an accepted message is never lost: power cuts, broken disks, killed processes, random histories."""
