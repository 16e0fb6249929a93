"""Further API objects: claims and volumes, quotas, what namespaces hold."""
