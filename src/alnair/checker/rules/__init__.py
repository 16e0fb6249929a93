"""The rules, a module per idea; `alnair.checker.registry` names them.

A rule is a function of values that yields violations and knows neither time nor the API server.
"""
