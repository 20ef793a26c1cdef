"""A child process that answers frames: it may hang, crash or be killed, and its parent lives on.

``process`` is the parent's end, ``server`` the child's, ``frames`` what they say to each other,
``spare`` keeps idle children for the next owner, and ``confinement`` is what a child may take and
see.
"""
