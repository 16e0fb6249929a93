"""The processes: the scheduler, the controller and the agent; a package each.

Wiring: they feed decisions with events and carry their actions out. What can be decided on values
is in `alnair.scheduler` and `alnair.sharing`, what looks at a machine in `alnair.node`, what
processes share toward their operators in `alnair.serving`. No process imports another.

The same name is the same thing in each: `process` has `serve()`, which starts and ends all;
`endpoints` what is served over HTTP; `metrics` the figures at `/metrics`. Other modules are named
by what they do: `actuator`, `evictor`, `enforcement`, `pod_groups`.
"""
