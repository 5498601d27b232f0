"""What a cell did, told by looking at the kernel after it.

``looks.look`` takes the fingerprint of one name's objects on a walk (``graph``), by what ``kinds`` knows of classes;
``process`` looks at what is set for the whole process, and ``watch.Watch`` compares from one cell to the next.
"""
