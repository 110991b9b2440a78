"""Random damage to ONNX models: bytes of the file, and parts of a model that stays a valid message."""

OPERATORS = ["Add", "MatMul", "Reshape", "Concat", "Conv", "Softmax", "Loop", "If", "Gather", "Slice", "Split", "Resize", "Constant", "LSTM", "Transpose"]
NUMBERS = [0, 1, -1, 2, 3, 7, -9, 64, 1 << 20, 1 << 31, (1 << 63) - 1, -(1 << 63)]


def damaged_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        kind = rng.random()
        if kind < 0.7:
            data[at] ^= 1 << rng.randrange(8)
        elif kind < 0.9:
            data[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
        else:
            data = data[:at] or data
    return bytes(data)


def mutated(model, rng):
    """One to three parts of the model replaced by what a careless or hostile writer could put there."""
    for _ in range(rng.randint(1, 3)):
        graph = model.graph
        while True:  # down into a body now and then
            bodies = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
            if not bodies or rng.random() < 0.5:
                break
            graph = rng.choice(bodies)
        rng.choice([of_node, of_node, of_attribute, of_tensor, of_info])(model, graph, rng)


def names(graph):
    return ["", *(n for x in graph.node for n in (*x.input, *x.output)), *(t.name for t in graph.initializer)]


def of_node(model, graph, rng):
    if not graph.node:
        return
    node = rng.choice(graph.node)
    kind = rng.randrange(7)
    if kind == 0:
        node.op_type = rng.choice(OPERATORS)
    elif kind == 1 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names(graph))
    elif kind == 2 and node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(names(graph))
    elif kind == 3 and node.input:
        del node.input[rng.randrange(len(node.input)) :]
    elif kind == 4:
        node.input.append(rng.choice(names(graph)))
    elif kind == 5:
        graph.node.remove(node)
    else:
        node.domain = rng.choice(["", "ai.onnx", "ai.onnx.ml", "com.example"])


def of_attribute(model, graph, rng):
    found = [a for n in graph.node for a in n.attribute]
    if not found:
        return
    a = rng.choice(found)
    kind = rng.randrange(5)
    if kind == 0:
        a.i = rng.choice(NUMBERS)
    elif kind == 1:
        a.f = rng.choice([0.0, float("nan"), float("inf"), -1.0])
    elif kind == 2:
        a.type = rng.randrange(15)
    elif kind == 3:
        a.name = rng.choice(["axis", "axes", "perm", "pads", "to", "body", "value", "strides", "group"])
    elif a.ints:
        a.ints[rng.randrange(len(a.ints))] = rng.choice(NUMBERS)


def of_tensor(model, graph, rng):
    found = [*graph.initializer, *(a.t for n in graph.node for a in n.attribute if a.HasField("t"))]
    if not found:
        return
    t = rng.choice(found)
    kind = rng.randrange(4)
    if kind == 0:
        t.data_type = rng.randrange(28)
    elif kind == 1 and t.dims:
        t.dims[rng.randrange(len(t.dims))] = rng.choice(NUMBERS)
    elif kind == 2:
        t.name = rng.choice(names(graph))
    elif t.raw_data:
        at = rng.randrange(len(t.raw_data))
        t.raw_data = t.raw_data[:at] + rng.randbytes(1) + t.raw_data[at + 1 :]


def of_info(model, graph, rng):
    info = rng.choice([*graph.input, *graph.output] or [None])
    kind = rng.randrange(4)
    if info is None or kind == 0:
        model.opset_import[0].version = rng.choice([0, 1, 6, 7, 9, 11, 13, 18, 99, -1])
    elif kind == 1:
        info.type.tensor_type.elem_type = rng.randrange(28)
    elif kind == 2 and info.type.tensor_type.shape.dim:
        rng.choice(info.type.tensor_type.shape.dim).dim_value = rng.choice(NUMBERS)
    else:
        info.name = rng.choice(names(graph))
