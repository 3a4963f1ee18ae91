"""Mail filtered on its way and sorted where it lies: `filter`, `sort`, `setup` and `held`.

Secret: how mail folders and a model are kept in step.  A message is recognised after its user has
moved it, and a crash may come between any two steps.
"""
