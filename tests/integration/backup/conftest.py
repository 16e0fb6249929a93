"""The bare cluster that these tests share with those of `alnair check`."""

from kit.live.objects_cluster import admin, namespace, objects_cluster

__all__ = ["admin", "namespace", "objects_cluster"]
