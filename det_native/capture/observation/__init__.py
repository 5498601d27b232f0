"""What a cell did, told by looking at the kernel before it and after it.

``graph.look`` takes the fingerprint of one name's objects, ``kinds`` knows how to look at what libraries make,
``process`` looks at what is set for the whole process, and ``watch.Watch`` compares from one cell to the next.
"""
