"""The vGPU server: who may use how much of which GPU, told to the containers and kept account of.

It never believes a tenant: who a peer is, the kernel says; what is limited stands in a page that
only the server writes; what the tenants write is read as one reads a stranger's letter. No
exception of one container's making may reach another's.
"""
