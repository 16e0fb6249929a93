"""Alnair's own wheels and container images, made of a checkout; nothing is taken from a registry.

`images.build` is what others call. The images are those of `deploy/images/Containerfile`, whose two
base images are made here of Debian's packages, and whose Python packages are those of the locks in
`requirements/`. All that is made is kept in the cache folder under a digest of what it is made of.
"""
