"""Masters on machines that are reached by SSH: ``DET_MASTER=ssh://user@host[:port]``.

``target`` reads the address, ``ssh`` runs the system's ``ssh``, ``asking`` asks over it for the master there, which
``there`` answers, ``link`` shares one connection among all processes of a user.
"""
