/* consumer.c: the least a program outside this repository does with the library. C99 and C++. */
#include <openinfer.h>
#include <stdio.h>
#include <string.h>

static int has_entry(void)
{
    oi_graph *g = OI_GRAPH(dynamic { x: f32[B]; } block entry { return; });
    char *text = NULL;
    int ok = oi_graph_to_text(g, &text, NULL) == OI_OK && strstr(text, "block entry") != NULL;
    oi_free(text);
    oi_graph_free(g);
    return ok;
}

int main(void)
{
    const char *const words[] = {"relu", "softmax"};
    const char *near = oi_did_you_mean("sofmax", words, 2);
    oi_diag *d = oi_diag_new();
    int ok = d && near && strcmp(near, "softmax") == 0 && oi_diag_errors(d) == 0;
    oi_diag_free(d);
    printf("openinfer %s, %u bits in an f32\n", oi_version(), oi_dtype_bits(OI_F32));
    return ok && has_entry() && oi_dtype_bits(OI_F32) == 32 ? 0 : 1;
}
