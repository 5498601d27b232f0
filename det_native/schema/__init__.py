"""Data shared by notebook, master and worker: configuration, lengths, states, REST models, manifests."""
