"""What runs on each machine of the cluster: starts workers, and is to them what a master on this machine would be."""
