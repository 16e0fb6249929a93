"""The bare cluster that tests of `alnair check` and `alnair report` share."""

from kit.live.objects_cluster import admin, namespace, objects_cluster

__all__ = ["admin", "namespace", "objects_cluster"]
