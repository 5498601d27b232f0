"""What a training on the cluster has changed comes into the notebook: objects, names and files."""
