"""Workers on the machines of a Ray cluster; ``docs/decisions/0056-many-machines-by-ray.md`` says how.

The launcher (``launcher.py``, in the master) talks to a process of its own, the bridge (``bridge/``), which alone
imports Ray. On each machine an actor, the agent (``agent/``), runs the workers; what it wants of the master it asks
(``asks/``), and the bridge answers.
"""
