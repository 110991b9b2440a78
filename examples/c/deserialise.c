/* deserialise.c: reads a graph back from JSON and shows it as text. What is wrong with it is said
 * with the place in the JSON.
 *
 *     ./deserialise minimal-graph.json
 */
#include <openinfer.h>

#include <stdio.h>
#include <stdlib.h>

/* The bytes of a file, ended by 0; NULL when it cannot be read. */
static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    *n = 0;
    for (size_t cap = 1 << 16; f && (text = realloc(text, cap)) != NULL; cap *= 2) {
        *n += fread(text + *n, 1, cap - 1 - *n, f);
        if (*n + 1 < cap)
            break;
    }
    if (text)
        text[*n] = '\0';
    if (f)
        fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "minimal-graph.json";
    oi_diag *diag = oi_diag_new();
    oi_graph *graph = NULL;
    char *text = NULL;
    size_t n;
    char *json = read_file(path, &n);
    oi_status status = json ? oi_graph_from_json(json, n, path, &graph, diag) : OI_ERR_ENV;
    if (status == OI_OK)
        status = oi_graph_to_text(graph, &text, diag);
    oi_diag_print(diag, stderr, false);
    if (text)
        fputs(text, stdout);

    oi_free(text);
    free(json);
    oi_graph_free(graph);
    oi_diag_free(diag);
    return status == OI_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
