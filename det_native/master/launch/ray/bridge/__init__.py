"""The process between a master and a Ray cluster: it drives Ray, and answers what the agents of the machines ask."""
