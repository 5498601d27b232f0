"""From a live notebook (or script) to a bundle: executed cells, the values they need, and files."""
