"""The master's HTTP interface: routes, who may use them, and how refusals look."""
