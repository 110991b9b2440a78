/* main.c: oi-chat, a conversation with a language model in the terminal. */
#include "chat.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    chat_options options;
    int code = chat_options_read(argc, argv, &options);
    if (code == 0 && !options.help) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        if (options.engine.threads == 0)
            options.engine.threads = n < 1 ? 1 : n > 8 ? 8 : (uint32_t)n;
        code = chat_talk(&options);
    }
    chat_tokens_free(&options.tokens);
    chat_why why;
    if (!chat_flush(&why)) {
        if (code == 0)
            fprintf(stderr, "oi-chat: %s\n", why.text);
        code = OI_ERR_ENV;
    }
    return code;
}
