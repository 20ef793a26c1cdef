"""The suite of ``optiml bench``: kernels as newcomers write them, their floors, and their peers.

``families/`` has one file a family with its tasks, ``kernels/`` the text of each; a new task is
an entry in the one and a ``.cu`` file in the other.
"""
