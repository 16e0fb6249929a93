"""Our custom resources as CustomResourceDefinition manifests, generated from types."""
