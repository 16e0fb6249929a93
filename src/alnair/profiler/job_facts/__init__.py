"""What a job works on: model, weights, input, and which calls of CUDA it makes.

Each fact says where it is from. What a pod's specification or its log says is a stranger's word:
names are cut and checked, and nothing that may be a secret is kept.
"""
