/* commands.h: every command, once: COMMAND(name, words it takes, what it does).
 * Feeds dispatch, --help, man pages and completion. A row joins together with its cli/NAME.c. */
COMMAND(inspect, "MODEL.oinf", "validate a model package and list what it holds")
COMMAND(check, "GRAPH", "find what is wrong with a graph before it runs")
COMMAND(fmt, "GRAPH", "lay a graph out canonically, comments kept")
COMMAND(graph, "GRAPH", "convert a graph to text, JSON or a picture")
COMMAND(run, "GRAPH", "simulate a graph and print what it gives")
COMMAND(step, "GRAPH", "simulate a graph node by node, at a prompt")
COMMAND(synth, "GRAPH...", "turn graphs into source code for a device")
COMMAND(ops, "[NAME]", "list the ops, or explain one")
COMMAND(targets, "[DEVICE]...", "list the device profiles, or print a device in full")
COMMAND(version, "", "print the version and what was found at build time")
COMMAND(completion, "bash|zsh|fish", "print a completion script for a shell")
COMMAND(help, "[COMMAND]", "explain a command")
