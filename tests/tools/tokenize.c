/* tokenize.c: MODEL.oinf; texts on standard input, each ended by NUL. Prints the tokens of each on
 * a line. A text that begins with byte 1 is trusted: it may name control tokens. With a second
 * argument "decode" the tokens are decoded again and must give the text back. */
#include "chat.h"

static int fail(const chat_why *why)
{
    fprintf(stderr, "tokenize: %s\n", why->text);
    return EXIT_FAILURE;
}

/* One text, ended by NUL; false at the end. */
static bool read_text(chat_bytes *text)
{
    int c;
    text->n = 0;
    while ((c = getchar()) != EOF && c != '\0') {
        char byte = (char)c;
        chat_bytes_add(text, &byte, 1);
    }
    return c != EOF;
}

static bool one(const chat_vocab *vocab, const chat_bytes *text, bool decodes, chat_why *why)
{
    bool trusted = text->n && text->at[0] == '\1';
    chat_parts parts = {0};
    chat_tokens tokens = {0};
    chat_bytes back = {0};
    chat_parts_add(&parts, text->at + trusted, text->n - trusted, trusted);
    bool ok = chat_encode(vocab, &parts, &tokens, why);
    for (size_t i = 0; ok && i < tokens.n; i++) {
        printf("%s%d", i ? "," : "", (int)tokens.at[i]);
        chat_decode(vocab, tokens.at[i], true, &back);
    }
    putchar('\n');
    if (ok && decodes &&
        (back.n != parts.text.n || (back.n && memcmp(back.at, parts.text.at, back.n))))
        ok = chat_fail(why, "decoding gave '%.*s'", (int)back.n, back.n ? back.at : "");
    chat_parts_free(&parts);
    chat_tokens_free(&tokens);
    chat_bytes_free(&back);
    return ok;
}

int main(int argc, char **argv)
{
    oi_model *model = NULL;
    chat_vocab *vocab = NULL;
    chat_bytes text = {0};
    chat_why why = {"the package cannot be opened"};
    bool ok = argc >= 2 && oi_model_open(argv[1], &model, NULL) == OI_OK &&
              chat_vocab_load(model, &vocab, &why);
    while (ok && read_text(&text))
        ok = one(vocab, &text, argc > 2 && !strcmp(argv[2], "decode"), &why);
    chat_bytes_free(&text);
    chat_vocab_free(vocab);
    oi_model_close(model);
    return ok ? EXIT_SUCCESS : fail(&why);
}
