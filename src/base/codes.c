/* codes.c: every code of a diagnostic: what it means, and an example that gives it. `openinfer
 * explain` prints these rows; a test runs each example and looks for codes that have no row. */
#include "base/base.h"

#define CHECK   "openinfer check FILE.oi"
#define STRICT  "openinfer check FILE.oi --strict"
#define LINK    "openinfer check FILE.oi --model MODEL.oinf"
#define RUN     "openinfer run FILE.oi"
#define COMPACT "openinfer fmt FILE.oi --to compact"
#define SYNTH   "openinfer synth FILE.oi -o DIR"
#define DEVICE  "openinfer targets FILE.json"

static const oi_explained codes[] = {
    {"E001", "the text is not of the language",
     "A token or a literal is wrong, or stands where another one is wanted. The same code is given "
     "for JSON that does not describe a graph.",
     "block entry { op neg(x) > x; return; }", CHECK, ""},
    {"E002", "a memory section after a block (strict)",
     "All memory is declared before the first block. Without --strict this is W102.",
     "block entry { return; }\ndynamic { x: f32; }", STRICT, ""},
    {"E003", "a branch with two names",
     "`branch b;` calls a block. `branch c t e;` calls t when c is true, else e.",
     "volatile { c: bool; }\nblock entry { branch c left; return; }\nblock left { return; }", CHECK,
     ""},
    {"E004", "there is no block entry", "The block called `entry` is the one that a step runs.",
     "block main { return; }", CHECK, ""},
    {"E005", "a block does not end",
     "The last statement of a block is `return`, or `yield` in a block other than entry.",
     "volatile { x: f32; }\nblock entry { op neg(x) >> x; }", CHECK, ""},
    {"E006", "a statement after the end of a block", "Nothing can run after `return`.",
     "volatile { x: f32; }\nblock entry { return; op neg(x) >> x; }", CHECK, ""},
    {"E007", "a block ends inside a loop", "`return` stands at the end of a block only.",
     "block entry { loop l (i in 0..3) { return; } return; }", CHECK, ""},
    {"E010", "a name that is taken",
     "Variables have one name for the whole graph, blocks too; a loop index differs from those "
     "around it.",
     "volatile { x: f32; x: i32; }\nblock entry { return; }", CHECK, ""},
    {"E011", "a size that has no value",
     "A dim names a size that the model does not have, or does not compute: it overflows, is "
     "negative, or leaves a remainder. A value given with --size must be for a size that exists.",
     "dynamic { x: f32[N]; }\nblock entry { return; }", LINK, "size B = 2"},
    {"E012", "another element type than the model's",
     "A variable has the type of the tensor or metadata that it is linked to.",
     "constant { w: f16[2]; }\nblock entry { return; }", LINK, "tensor w: f32[2]"},
    {"E013", "another shape than the model's",
     "A variable has the shape of the tensor or metadata that it is linked to. Graphs that share "
     "state declare it alike.",
     "constant { w: f32[3]; }\nblock entry { return; }", LINK, "tensor w: f32[2]"},
    {"E014", "@ref names nothing of the model", "The key is a tensor, metadata or a size.",
     "constant { w: f32[2] @ref(\"weight\"); }\nblock entry { return; }", LINK,
     "tensor weights: f32[2]"},
    {"E015", "a value of the wrong sort",
     "@init of an integer is an integer, of bool true or false.",
     "volatile { n: i32 @init(0.5); }\nblock entry { return; }", CHECK, ""},
    {"E016", "a value out of range", "@init fits the variable's type.",
     "volatile { n: u8 @init(256); }\nblock entry { return; }", CHECK, ""},
    {"E017", "an attribute given twice", "Each attribute stands once, and names each index once.",
     "volatile { n: i32 @init(1) @init(2); }\nblock entry { return; }", CHECK, ""},
    {"E018", "an attribute in the wrong place",
     "@table, @auto_dim, @fixed and @cap are for persistent variables with indices, @pattern is "
     "for "
     "volatile and constant ones.",
     "volatile { x: f32[2] @table; }\nblock entry { return; }", CHECK, ""},
    {"E019", "an unknown attribute or hint",
     "Every attribute acts: @init, @ref, @pattern, @table, @auto_dim, @fixed, @cap, @layout; of "
     "hints "
     "there is fuse. In strict mode the same is said of unknown keys of a graph's JSON.",
     "volatile { x: f32[2] @layuot(\"row_major\"); }\nblock entry { return; }", CHECK, ""},
    {"E020", "an input without a value (strict)",
     "In strict mode every dynamic variable without @init gets a value before each step.",
     "dynamic { x: f32[2]; }\nblock entry { return x; }", RUN " --strict", ""},
    {"E021", "a value for what takes none",
     "Only dynamic variables take values from the host, and only between steps.",
     "volatile { w: f32[2]; }\nblock entry { return; }", RUN " --set w=1", ""},
    {"E022", "a constant without data",
     "A constant has data in the model, or @init. Name the package with --model.",
     "constant { w: f32[2]; }\nblock entry { return; }", RUN, ""},
    {"E023", "a variable is read before anything sets it (strict)",
     "Without --strict this is W110.",
     "volatile { weigth: f32[2]; y: f32[2]; }\nblock entry { op neg(weigth) >> y; return; }",
     LINK " --strict", "tensor weight: f32[2]"},
    {"E024", "a layout that nothing follows",
     "@layout(\"row_major\") makes programs read a tensor of the model as the package holds it, "
     "without "
     "a packed copy. There is no other layout: ops give axes their meaning.",
     "volatile { w: f32[2, 2] @layout(\"column_major\"); }\nblock entry { return; }", CHECK, ""},
    {"E025", "quantisation asked for by an attribute",
     "Attributes change no result, and quantising does. A quantised tensor is stored so in the "
     "package, and read with qlinear, qmatmul, qconv or dequantize.",
     "volatile { w: f32[2, 2] @quantize(\"i8\"); }\nblock entry { return; }", CHECK, ""},
    {"E030", "an unknown name", "The name is neither declared nor a size or metadata of the model.",
     "volatile { x: f32; }\nblock entry { op neg(y) >> x; return; }", CHECK, ""},
    {"E031", "a write to what cannot be written", "Constants and loop indices are only read.",
     "constant { w: f32 @init(1.0); }\nblock entry { op neg(w) >> w; return; }", CHECK, ""},
    {"E032", "assign outside entry", "Temporaries are declared in the block entry.",
     "block entry { branch b; return; }\nblock b { assign t: f32; return; }", CHECK, ""},
    {"E033", "persistent memory used directly",
     "Ops and transfer work on other memory: cache.read copies out of persistent memory, "
     "cache.write into it.",
     "volatile { y: f32; }\npersistent { s: f32; }\nblock entry { op neg(s) >> y; return; }", CHECK,
     ""},
    {"E034", "a loop index that is not bound",
     "A block that uses a loop index is called only inside loops with that index.",
     "volatile { y: i64; }\nblock entry { loop l (i in 0..2) { branch b; } branch b; return; }\n"
     "block b { op neg(i) >> y; return; }",
     CHECK, ""},
    {"E035", "an unknown block", "branch names a block of the graph.",
     "block entry { branch somewhere; return; }", CHECK, ""},
    {"E036", "a block that cannot be called",
     "Neither entry nor a consumer (a block with await) can.",
     "volatile { x: f32; }\nblock entry { yield x; await x; branch c; return; }\n"
     "block c { await x; op neg(x) >> x; yield x; }",
     CHECK, ""},
    {"E037", "blocks that call each other in a circle, or too deep",
     "There is no recursion. A block may be called from a block that is called, and so on, 1000 "
     "levels deep; a loop around a branch is a level too.",
     "block entry { branch a; return; }\nblock a { branch b; return; }\nblock b { branch a; "
     "return; "
     "}",
     CHECK, ""},
    {"E038", "dep names nothing",
     "dep after(T) before(U) orders the nearest node T above it and the nearest node U below it.",
     "volatile { x: f32; }\nblock entry { op neg(x) >> x; dep after(exp) before(neg); op neg(x) >> "
     "x; return; }",
     CHECK, ""},
    {"E039", "values returned by another block than entry", "Only entry gives values to the host.",
     "volatile { x: f32; }\nblock entry { branch b; return; }\nblock b { return x; }", CHECK, ""},
    {"E041", "the wrong number of indices",
     "An access gives every index of a prefix table, and no "
     "more than a variable has.",
     "volatile { y: f32[2]; }\nconstant { W(l): f32[2] @pattern(\"W.{l}\"); }\n"
     "block entry { op neg(W[0, 1]) >> y; return; }",
     CHECK, ""},
    {"E042", "a negative index", "Indices and the starts of slices count from 0.",
     "volatile { y: f32[2]; }\npersistent { T(i): f32[2] @table; }\n"
     "block entry { cache.read T[-1] >> y; return; }",
     CHECK, ""},
    {"E043", "a wrong pattern",
     "Braces of @pattern hold an index of the table; {{ and }} are braces themselves.",
     "constant { W(l): f32[2] @pattern(\"W.{m}\"); }\nblock entry { return; }", CHECK, ""},
    {"E044", "the model lacks an entry of a prefix table", "Every entry that is used has a tensor.",
     "volatile { y: f32[2]; }\nconstant { W(l): f32[2] @pattern(\"W.{l}\"); }\n"
     "block entry { loop n (l in 0..2) { op neg(W[l]) >> y; } return; }",
     LINK, "tensor W.0: f32[2]"},
    {"E045", "a slice of a prefix table", "One entry is used at a time.",
     "volatile { y: f32[2]; }\nconstant { W(l): f32[2] @pattern(\"W.{l}\"); }\n"
     "block entry { op neg(W[0..1]) >> y; return; }",
     CHECK, ""},
    {"E046", "a slice that ends before it starts", "The end is not less than the start.",
     "volatile { y: f32[2]; }\npersistent { T(i): f32 @table; }\n"
     "block entry { cache.read T[3..1] >> y; return; }",
     CHECK, ""},
    {"E047", "out of range",
     "An index or a bound is beyond what memory has or may grow to, or does not compute. A full "
     "cache gives this code in the run.",
     "volatile { y: f32[2]; }\npersistent { T(i): f32[2] @table @fixed(i=4); }\n"
     "block entry { cache.read T[4] >> y; return; }",
     CHECK, ""},
    {"E048", "a reset of part of a growing axis", "Axes of @auto_dim are reset as a whole.",
     "persistent { A(i): f32[2] @auto_dim(i); }\nblock entry { cache.reset A[0..1]; return; }",
     CHECK, ""},
    {"E050", "element types that differ",
     "The inputs of an op share one type unless the op says otherwise; nothing is converted "
     "silently: `op cast(x, to=f16)` converts.",
     "volatile { a: f32[2]; b: f16[2]; }\nblock entry { op add(a, b) >> a; return; }", CHECK, ""},
    {"E051", "shapes that do not fit",
     "Shapes are as the op's page says (openinfer ops NAME). Elementwise ops broadcast: aligned at "
     "the last axis, where equal lengths or 1 fit.",
     "volatile { a: f32[3]; b: f32[4]; }\nblock entry { op add(a, b) >> a; return; }", CHECK, ""},
    {"E052", "an unknown attribute of an op", "openinfer ops NAME lists the attributes.",
     "volatile { x: f32[2, 2]; }\nblock entry { op softmax(x, dim=1) >> x; return; }", CHECK, ""},
    {"E053", "an attribute's value does not suit",
     "openinfer ops NAME says what an attribute takes.",
     "volatile { x: f32[2, 2]; }\nblock entry { op softmax(x, axis=\"last\") >> x; return; }",
     CHECK, ""},
    {"E054", "an attribute given twice, or one that is missing",
     "An attribute has one value, under its name or its alias; required ones are given.",
     "volatile { x: f32[2, 2]; }\nblock entry { op softmax(x, axis=0, axis=1) >> x; return; }",
     CHECK, ""},
    {"E055", "counting on what does not count",
     "cache.increment and cache.decrement are for numbers of rank 0, not bool and packed ones.",
     "persistent { done: bool; }\nblock entry { cache.increment done; return; }", CHECK, ""},
    {"E056", "the wrong number of inputs or outputs", "openinfer ops NAME lists them.",
     "volatile { x: f32; }\nblock entry { op add(x) >> x; return; }", CHECK, ""},
    {"E057", "an unknown op", "openinfer ops lists all of them.",
     "volatile { x: f32[2]; }\nblock entry { op ReduceMax(x) >> x; return; }", CHECK, ""},
    {"E060", "an op that does not take this type",
     "The op's page lists the types it takes; a device may take fewer. The same code is given for "
     "a device that no program can be made for.",
     "volatile { x: i8[2]; }\nblock entry { op recip(x) >> x; return; }", CHECK, ""},
    {"E062", "a size that the device cannot plan for",
     "Synthesized programs know every size before they run: a `?` and what grows need a bound "
     "(@fixed or @cap), and everything must fit the device's memory.",
     "dynamic { x: f32[4]; }\npersistent { T(i): f32[4] @table; n: i32; }\n"
     "block entry { cache.write x >> T[n]; cache.increment n; return; }",
     SYNTH, ""},
    {"E063", "a run that executes more nodes than allowed",
     "--max-nodes bounds how many nodes a run may execute, over all steps and all rounds of loops. "
     "The step that would execute more fails and changes nothing.",
     "volatile { x: f32; }\n"
     "block entry { loop l (i in 0..1000000000) { op exp(x) >> x; } return x; }",
     RUN " --max-nodes 1000", ""},
    {"E064", "a program that takes more bytes than allowed",
     "--max-output bounds the files of a synthesized program (64G unless it is given). Weights "
     "take the most: constants that @init fills have their full size there.",
     "constant { w: f32[250000000000] @init(1.5); }\ndynamic { i: i64[1]; }\n"
     "block entry { assign y: f32[1]; op gather(w, i, axis=0) >> y; return y; }",
     SYNTH, ""},
    {"E065", "a memory limit that cannot be kept",
     "--memory-limit bounds model tensors, values, scratch and persistent memory together. "
     "Products, "
     "convolutions and look-ups stream tensors that do not fit; the message names the least that "
     "would do. What only the run knows (a table that grows, a length) is refused when it comes, "
     "and "
     "the step is taken back.",
     "dynamic { x: f32[100000]; }\nvolatile { y: f32[100000]; }\n"
     "block entry { op sort(x) >> y; return y; }",
     RUN " --memory-limit 512K", ""},
    {"E070", "a lent variable is used", "Between yield and await entry leaves it alone.",
     "volatile { x: f32; y: f32; }\nblock entry { yield x; op neg(x) >> y; await x; return; }\n"
     "block c { await x; op neg(x) >> x; yield x; }",
     CHECK, ""},
    {"E071", "what cannot be lent", "Constants cannot, nor what is lent already.",
     "volatile { x: f32; }\nblock entry { yield x; yield x; await x; return; }\n"
     "block c { await x; op neg(x) >> x; yield x; }",
     CHECK, ""},
    {"E072", "a consumer keeps what it awaited", "Its last yield names everything that it awaits.",
     "volatile { x: f32; y: f32; }\nblock entry { yield x, y; await x, y; return; }\n"
     "block c { await x, y; op neg(x) >> x; yield x; }",
     CHECK, ""},
    {"E073", "await of what is not lent", "yield comes before await.",
     "volatile { x: f32; }\nblock entry { await x; return; }\n"
     "block c { await x; op neg(x) >> x; yield x; }",
     CHECK, ""},
    {"E074", "two that write one variable at the same time",
     "Between yield and await, one block writes a variable: entry or one consumer.",
     "volatile { x: f32; y: f32; }\nblock entry { yield x; await x; return; }\n"
     "block c { await x; op neg(x) >> y; yield x; }\nblock d { await x; op exp(x) >> y; yield x; }",
     CHECK, ""},
    {"E075", "persistent memory read while another writes it",
     "What a consumer writes, nobody else reads between yield and await.",
     "volatile { x: f32; y: f32; }\npersistent { p: f32; }\n"
     "block entry { yield x; cache.read p >> y; await x; return; }\n"
     "block c { await x; cache.write x >> p; yield x; }",
     CHECK, ""},
    {"E076", "a deadlock", "entry waits for a consumer that waits for what nobody can lend.",
     "volatile { a: f32; b: f32; }\nblock entry { yield a; await a; yield b; await b; return; }\n"
     "block c { await a; await b; yield a, b; }",
     CHECK, ""},
    {"E077", "entry returns while something is lent (strict)",
     "Without --strict this is W109: the await is implied.",
     "volatile { x: f32; }\nblock entry { yield x; return; }\n"
     "block c { await x; op neg(x) >> x; yield x; }",
     STRICT, ""},
    {"E080", "a shape that only the model knows",
     "The compact form takes types and shapes from the model: what model[\"KEY\"] names is there, "
     "and --model names the package.",
     "inputs: { x: f32[2] },\nlet y = add(x, model[\"wieght\"]);\noutput y;", LINK,
     "tensor weight: f32[2]"},
    {"E081", "the model lacks an entry of a table",
     "Every key that model[format!(...)] makes over its loop is a tensor, all of one type and "
     "shape.",
     "inputs: { x: f32[2] },\nlet y = add(x, x);\n"
     "for l in 0..2 { y = add(y, model[format!(\"W.{l}\")]); }\noutput y;",
     LINK, "tensor W.0: f32[2]"},
    {"E082", "a name changes its type in a loop",
     "Outside loops a name may be bound anew with another type or shape, inside it keeps them.",
     "inputs: { x: f32[2] },\nlet y = add(x, x);\nfor l in 0..2 { y = y |> cast(f16); }\noutput y;",
     CHECK, ""},
    {"E083", "the value of a loop is missing",
     "`let x = for ...` takes the value of x after the loop: x is bound before it and assigned in "
     "its body.",
     "inputs: { x: f32[2] },\nlet y = add(x, x);\n"
     "let y = for l in 0..2 { let t = add(x, x); };\noutput y;",
     CHECK, ""},
    {"E084", "output is not the last statement",
     "The compact form ends with `output NAME, ...;`, which stands in no loop.",
     "inputs: { x: f32[2] },\nlet y = add(x, x);", CHECK, ""},
    {"E085", "the compact form cannot say it",
     "It is one sequence of statements with loops: no blocks, barriers, or memory that lasts other "
     "than key-value caches, and no value that is read before a statement has assigned it.",
     "dynamic { x: f32[2]; }\nblock entry { barrier; return x; }", COMPACT, ""},
    {"E090", "a value of a device file is missing or wrong",
     "openinfer targets --fields says what each field takes.",
     "{\"extends\": \"cpu_avx2\", \"cpu\": {\"threads\": -1}}", DEVICE, ""},
    {"E091", "fields of a device file contradict each other", "No code could be right for both.",
     "{\"extends\": \"cpu_avx2\", \"cpu\": {\"isa\": [\"avx2\", \"neon\"]}}", DEVICE, ""},
    {"E092", "a device file extends what it cannot",
     "extends names a built-in profile or a file in the same folder, without going in a circle.",
     "{\"extends\": \"no_such_profile\"}", DEVICE, ""},
    {"E093", "an unknown key in a device file (strict)", "Without --strict this is W190.",
     "{\"extends\": \"cpu_avx2\", \"cpu\": {\"thread\": 4}}", DEVICE " --strict", ""},
    {"W101", "@init is not used", "The model has data for the variable.",
     "volatile { w: f32[2] @init(1.0); }\nblock entry { return w; }", LINK, "tensor w: f32[2]"},
    {"W102", "a memory section after a block", "Declare all memory before the first block.",
     "block entry { return; }\ndynamic { x: f32; }", CHECK, ""},
    {"W103", "an attribute without @", "Write @init(1), not init(1).",
     "volatile { n: i32 init(1); }\nblock entry { return; }", CHECK, ""},
    {"W104", "@table is implied", "Say whether indices make a @table or grow the dims: @auto_dim.",
     "persistent { T(i): f32; }\nblock entry { return; }", CHECK, ""},
    {"W106", "an index that the pattern does not use",
     "Entries for its values are the same tensor.",
     "constant { W(l, h): f32[2] @pattern(\"W.{l}\"); }\nblock entry { return; }", CHECK, ""},
    {"W107", "a block that never runs", "Nobody calls it, and nothing that it awaits is lent.",
     "block entry { return; }\nblock unused { return; }", CHECK, ""},
    {"W108", "await without a consumer", "No block awaits the variable: await returns at once.",
     "volatile { x: f32; }\nblock entry { yield x; await x; return; }", CHECK, ""},
    {"W109", "entry returns while something is lent", "It awaits that first.",
     "volatile { x: f32; }\nblock entry { yield x; return; }\n"
     "block c { await x; op neg(x) >> x; yield x; }",
     CHECK, ""},
    {"W110", "a variable is read before anything sets it",
     "A volatile variable with neither data in the model nor @init holds zeros. The name of a "
     "weight may be misspelt, or --model is missing. Where zeros are meant, write @init(0).",
     "volatile { weigth: f32[2]; y: f32[2]; }\nblock entry { op neg(weigth) >> y; return; }", LINK,
     "tensor weight: f32[2]"},
    {"W111", "text without quotes",
     "A bare name is a variable, a size or metadata of the model; text stands in quotes.",
     "volatile { x: f32[2]; }\nblock entry { op gelu(x, approximate=tanh) >> x; return; }", CHECK,
     ""},
    {"W112", "an unknown key in a graph's JSON", "It is ignored; in strict mode it is E019.",
     "{\"blocks\": {\"entry\": {\"name\": \"entry\", \"nodes\": [{\"index\": 0, \"kind\": "
     "\"Return\"}]}},\n"
     " \"vars\": {}, \"speed\": 3}",
     "openinfer check FILE.json", ""},
    {"W190", "an unknown key in a device file", "It is kept and has no effect.",
     "{\"extends\": \"cpu_avx2\", \"cpu\": {\"thread\": 4}}", DEVICE, ""},
    {"W191", "a field of a device file that has no effect, or fits badly",
     "The device works without it, or slower than it could.",
     "{\"extends\": \"cpu_avx2\", \"cpu\": {\"libc\": false, \"threads\": 4}}", DEVICE, ""},
};

bool oi_explain_at(size_t i, oi_explained *out)
{
    if (i >= OI_COUNT(codes))
        return false;
    *out = codes[i];
    return true;
}
