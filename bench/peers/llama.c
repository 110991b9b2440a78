/* llama.c: times llama.cpp through its C API, as a peer that was built for this machine.
 *
 *     llama MODEL.gguf THREADS ROUNDS [FLASH]
 *
 * A line per round: tokens/s of reading 512 tokens at once, of decoding at a short context, and of
 * decoding behind 1,024 tokens. FLASH is 1 or 0: attention in one pass or not; left out, llama.cpp
 * decides. It is no part of our build: compile it against a llama.cpp of one's
 * own, cc -O2 bench/peers/llama.c -I LLAMA/include -I LLAMA/ggml/include ... -lllama -lggml -lm */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PROMPT = 512, LONG = 1024, DECODE = 32 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void quiet(enum ggml_log_level level, const char *text, void *ctx)
{
    (void)ctx;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

/* Reads n tokens, all at once or one after the other; gives the time. */
static double feed(struct llama_context *c, int n, int at_once)
{
    llama_token tokens[LONG];
    for (int i = 0; i < n; i++)
        tokens[i] = 1000 + 37 * i % 30000;
    double start = now();
    for (int i = 0; i < n; i += at_once)
        if (llama_decode(c, llama_batch_get_one(tokens + i, n - i < at_once ? n - i : at_once)) !=
            0)
            exit(1);
    llama_synchronize(c);
    return now() - start;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model *m = llama_model_load_from_file(argv[1], llama_model_default_params());
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 2048;
    p.n_batch = p.n_ubatch = PROMPT;
    p.n_threads = p.n_threads_batch = atoi(argv[2]);
    if (argc > 4)
        p.flash_attn_type =
            atoi(argv[4]) ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *c = m ? llama_init_from_model(m, p) : NULL;
    if (!c)
        return 1;
    feed(c, DECODE, DECODE);
    for (int i = 0; i < atoi(argv[3]); i++) {
        llama_memory_clear(llama_get_memory(c), true);
        double prompt = feed(c, PROMPT, PROMPT);
        llama_memory_clear(llama_get_memory(c), true);
        feed(c, 4, 4);
        double decode = feed(c, DECODE, 1);
        llama_memory_clear(llama_get_memory(c), true);
        feed(c, LONG, PROMPT);
        double behind = feed(c, DECODE, 1);
        printf("%.1f %.1f %.1f\n", PROMPT / prompt, DECODE / decode, DECODE / behind);
        fflush(stdout);
    }
    llama_free(c);
    llama_model_free(m);
    return 0;
}
