"""Prints the graph of a language model's decode step, of the shape of Llama 3.2 1B unless told otherwise.

    python bench/gpu_lm.py [--layers 16] [--dim 2048] [--heads 32] [--kv 8] [--ffn 8192] [--vocab 128256] [--ctx 1024] > lm.oi

Weights are bf16 and written in the graph, all of one layer's matrix alike, so that no model file is needed: only the
time counts. Every step begins at the place `from` of the cache (an input), so the length of the context can be chosen.
"""

import argparse


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in dict(layers=16, dim=2048, heads=32, kv=8, ffn=8192, vocab=128256, ctx=1024).items():
        a.add_argument(f"--{name}", type=int, default=value)
    o = a.parse_args()
    dh = o.dim // o.heads
    sizes = dict(Wq=(o.dim, o.dim), Wk=(o.kv * dh, o.dim), Wv=(o.kv * dh, o.dim), Wo=(o.dim, o.dim), Wg=(o.ffn, o.dim),
                 Wu=(o.ffn, o.dim), Wd=(o.dim, o.ffn))  # fmt: skip
    print("// A decode step of a language model, printed by bench/gpu_lm.py.")
    print("dynamic {\n  token: i32[1, 1] @init(3);\n  from: i32 @init(0);\n}\n\nconstant {")
    print(f"  embed: bf16[{o.vocab}, {o.dim}] @init(0.01);  // also the output layer\n  norm: f32[{o.dim}] @init(1);\n  zero: i32[1] @init(0);")
    for i in range(o.layers):
        print(f"  na{i}: f32[{o.dim}] @init(1);\n  nf{i}: f32[{o.dim}] @init(1);")
        for name, (n, k) in sizes.items():
            print(f"  {name}{i}: bf16[{n}, {k}] @init({0.002 + 0.0001 * i:.4f});")
    print(f"}}\n\nvolatile {{ logits: f32[1, 1, {o.vocab}]; }}\n\npersistent {{")
    print(f"  Kc(l, b, t): f16[{o.kv * dh}] @table @fixed(l={o.layers}, b=1, t={o.ctx});")
    print(f"  Vc(l, b, t): f16[{o.kv * dh}] @table @fixed(l={o.layers}, b=1, t={o.ctx});\n}}\n\nblock entry {{")
    print(f"  assign p: i32[1]; assign e: bf16[1, 1, {o.dim}]; assign x: f32[1, 1, {o.dim}]; assign h: f32[1, 1, {o.dim}];")
    print(f"  assign q: f32[1, 1, {o.dim}]; assign k: f32[1, 1, {o.kv * dh}]; assign v: f32[1, 1, {o.kv * dh}]; assign w: f32[{o.vocab}, {o.dim}];")
    print(f"  assign k16: f16[1, 1, {o.kv * dh}]; assign v16: f16[1, 1, {o.kv * dh}]; assign ka: f16[1, {o.ctx}, {o.kv * dh}];")
    print(f"  assign va: f16[1, {o.ctx}, {o.kv * dh}]; assign a: f32[1, 1, {o.dim}]; assign g: f32[1, 1, {o.ffn}]; assign u: f32[1, 1, {o.ffn}];")
    print("  op add(zero, from) >> p;\n  op gather(embed, token) >> e;\n  op cast(e, to=f32) >> x;")

    def product(x, w, n, k, y):
        print(f"  {{ assign w_{w}: f32[{n}, {k}]; }}" if 0 else f"  op cast({w}, to=f32) >> w_{w};\n  op matmul({x}, w_{w}, transpose_b=true) >> {y};")

    for i in range(o.layers):
        for name, (n, k) in sizes.items():
            print(f"  assign w_{name}{i}: f32[{n}, {k}];")
        print(f"  op rmsnorm(x, na{i}, eps=0.00001) >> h;")
        for name, y in (("Wq", "q"), ("Wk", "k"), ("Wv", "v")):
            product("h", f"{name}{i}", *sizes[name], y)
        print(f"  op rope(q, p, heads={o.heads}, theta=500000) >> q;\n  op rope(k, p, heads={o.kv}, theta=500000) >> k;")
        print(f"  op cast(k, to=f16) >> k16;\n  op cast(v, to=f16) >> v16;\n  cache.write k16 >> Kc[{i}, 0..1, from..from+1];")
        print(f"  cache.write v16 >> Vc[{i}, 0..1, from..from+1];\n  cache.read Kc[{i}] >> ka;\n  cache.read Vc[{i}] >> va;")
        print(f"  op sdpa(q, ka, va, heads={o.heads}, kv_heads={o.kv}, causal=true, kv_len=from+1) >> a;")
        product("a", f"Wo{i}", *sizes["Wo"], "h")
        print(f"  op add(x, h) >> x;\n  op rmsnorm(x, nf{i}, eps=0.00001) >> h;")
        product("h", f"Wg{i}", *sizes["Wg"], "g")
        product("h", f"Wu{i}", *sizes["Wu"], "u")
        print("  op silu(g) >> g;\n  op mul(g, u) >> g;")
        product("g", f"Wd{i}", *sizes["Wd"], "h")
        print("  op add(x, h) >> x;")
    print("  op rmsnorm(x, norm, eps=0.00001) >> x;\n  op cast(embed, to=f32) >> w;\n  op matmul(x, w, transpose_b=true) >> logits;")
    print("  return logits;\n}")


main()
