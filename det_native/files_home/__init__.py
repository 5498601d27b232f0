"""Files that trainings on the cluster write: code that reads them waits, and they come into the notebook's folder."""
