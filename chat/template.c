/* template.c: conversations as a model was trained to see them. Packages carry a template in Jinja;
 * this is an interpreter for the part of Jinja that such templates use:
 *
 *     text     = { TEXT | "{{" or "}}" | "{#" ... "#}" | "{%" tag "%}" } ;
 *     tag      = "for" NAME "in" "messages" | "endfor" | "if" or | "elif" or | "else" | "endif" ;
 *     or       = and { "or" and } ;  and = not { "and" not } ;  not = [ "not" ] compare ;
 *     compare  = sum [ ( "==" | "!=" ) sum | "is" [ "not" ] "defined" ] ;
 *     sum      = postfix { ( "+" | "~" ) postfix } ;
 *     postfix  = primary { "." NAME | "[" or "]" | "|" "trim" } ;
 *     primary  = STRING | INT | NAME | "(" or ")" ;
 *
 * It runs while it reads; a body that is not wanted is read without effect. Anything else is an
 * error with its place: a conversation written by a guess would only make the model worse. */
#include "chat.h"

#include <ctype.h>

#define MAX_DEPTH 32         /* of nested tags and brackets; bounds our stack */
#define MAX_TAGS  1000000    /* run in all; bounds the time of nested loops */
#define MAX_TEXT  (64 << 20) /* written */

typedef enum kind { UNDEFINED, TRUTH, INT, TEXT, MESSAGE, MESSAGES, LOOP } kind;

typedef struct value {
    kind kind;
    int64_t number; /* TRUTH, INT; MESSAGE: which */
    chat_parts text;
} value;

typedef struct scope { /* one loop */
    char name[32];
    size_t index;
    const struct scope *outer;
} scope;

typedef struct run {
    const char *source;
    size_t at, n;
    const chat_message *messages;
    size_t n_messages;
    bool for_answer;
    const char *bos, *eos;
    const scope *loops;
    unsigned depth, n_tags;
    chat_parts *out;
    chat_why *why;
} run;

static bool fail_here(run *r, const char *what)
{
    size_t line = 1;
    for (size_t i = 0; i < r->at && i < r->n; i++)
        line += r->source[i] == '\n';
    size_t left = r->at < r->n ? r->n - r->at : 0;
    return chat_fail(r->why, "the chat template is not understood: %s at line %zu, before '%.*s'",
                     what, line, (int)(left < 30 ? left : 30), r->source + (r->n - left));
}

static void value_free(value *v)
{
    chat_parts_free(&v->text);
}

/* -- words of an expression -- */

static void skip_blanks(run *r)
{
    while (r->at < r->n && isspace((unsigned char)r->source[r->at]))
        r->at++;
}

/* Takes the sign, when it stands here. */
static bool take(run *r, const char *sign)
{
    size_t n = strlen(sign);
    skip_blanks(r);
    if (n > r->n - r->at || memcmp(r->source + r->at, sign, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Takes the name, when it stands here as a whole. */
static bool take_word(run *r, const char *word)
{
    size_t before = r->at;
    if (take(r, word) && (r->at == r->n || !is_name_char(r->source[r->at])))
        return true;
    r->at = before;
    return false;
}

static bool take_name(run *r, char out[32])
{
    size_t n = 0;
    skip_blanks(r);
    while (r->at < r->n && is_name_char(r->source[r->at]) && n < 31)
        out[n++] = r->source[r->at++];
    out[n] = '\0';
    return n > 0 && !isdigit((unsigned char)out[0]);
}

static bool take_string(run *r, value *out)
{
    char quote = r->source[r->at++];
    out->kind = TEXT;
    for (; r->at < r->n && r->source[r->at] != quote; r->at++) {
        char c = r->source[r->at];
        if (c == '\\') {
            static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
            const char *found = ++r->at < r->n ? strchr(from, r->source[r->at]) : NULL;
            if (!found || !*found)
                return fail_here(r, "an unknown escape");
            c = to[found - from];
        }
        chat_parts_add(&out->text, &c, 1, true);
    }
    if (r->at >= r->n)
        return fail_here(r, "a string without an end");
    r->at++;
    return true;
}

/* -- values -- */

static void set_text(value *out, const char *text, bool trusted)
{
    out->kind = TEXT;
    chat_parts_add(&out->text, text, strlen(text), trusted);
}

static void set_truth(value *out, bool truth)
{
    value_free(out);
    *out = (value){.kind = TRUTH, .number = truth};
}

static bool is_true(const run *r, const value *v)
{
    switch (v->kind) {
    case TRUTH:
    case INT: return v->number != 0;
    case TEXT: return v->text.text.n > 0;
    case MESSAGES: return r->n_messages > 0;
    case MESSAGE:
    case LOOP: return true;
    case UNDEFINED: break;
    }
    return false;
}

static bool is_equal(const value *a, const value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind != TEXT)
        return a->number == b->number;
    return a->text.text.n == b->text.text.n &&
           (!a->text.text.n || !memcmp(a->text.text.at, b->text.text.at, a->text.text.n));
}

/* Appends text, part by part. */
static bool append(run *r, const value *from, chat_parts *to)
{
    if (from->kind != TEXT)
        return fail_here(r, "a value that is not text");
    for (size_t i = 0; i < from->text.n; i++) {
        const chat_part *part = &from->text.at[i];
        chat_parts_add(to, from->text.text.at + part->start, part->end - part->start,
                       part->trusted);
    }
    if (to->failed || to->text.n > MAX_TEXT)
        return chat_fail(r->why, "the conversation is too long for the memory there is");
    return true;
}

static void trim(value *v)
{
    const char *at = v->text.text.at;
    size_t start = 0, end = v->text.text.n;
    while (start < end && isspace((unsigned char)at[start]))
        start++;
    while (end > start && isspace((unsigned char)at[end - 1]))
        end--;
    chat_parts kept = {0};
    for (size_t i = 0; i < v->text.n; i++) {
        chat_part p = v->text.at[i];
        p.start = p.start < start ? start : p.start;
        p.end = p.end > end ? end : p.end;
        if (p.start < p.end)
            chat_parts_add(&kept, at + p.start, p.end - p.start, p.trusted);
    }
    value_free(v);
    v->text = kept;
}

/* -- expressions; each function is the rule of its name, and writes a fresh value -- */

static bool or_rule(run *r, value *out);

static void look_up(const run *r, const char *name, value *out)
{
    if (!strcmp(name, "messages"))
        out->kind = MESSAGES;
    else if (!strcmp(name, "add_generation_prompt"))
        set_truth(out, r->for_answer);
    else if (!strcmp(name, "bos_token"))
        set_text(out, r->bos, true);
    else if (!strcmp(name, "eos_token"))
        set_text(out, r->eos, true);
    else if (!strcmp(name, "true") || !strcmp(name, "false"))
        set_truth(out, name[0] == 't');
    else if (!strcmp(name, "loop") && r->loops)
        out->kind = LOOP;
    for (const scope *s = r->loops; s && out->kind == UNDEFINED; s = s->outer)
        if (!strcmp(name, s->name)) {
            out->kind = MESSAGE;
            out->number = (int64_t)s->index;
        }
}

static bool primary_rule(run *r, value *out)
{
    char name[32];
    skip_blanks(r);
    char c = r->at < r->n ? r->source[r->at] : '\0';
    if (c == '\'' || c == '"')
        return take_string(r, out);
    if (isdigit((unsigned char)c)) {
        out->kind = INT;
        while (r->at < r->n && isdigit((unsigned char)r->source[r->at]) && out->number < 1000000)
            out->number = out->number * 10 + (r->source[r->at++] - '0');
        return true;
    }
    if (take(r, "(")) {
        if (++r->depth > MAX_DEPTH)
            return fail_here(r, "too many brackets");
        bool ok = or_rule(r, out);
        r->depth--;
        return ok && (take(r, ")") || fail_here(r, "a missing ')'"));
    }
    if (!take_name(r, name))
        return fail_here(r, "an expression");
    look_up(r, name, out);
    return true;
}

/* messages[0], message['role'], loop.first */
static bool member(run *r, value *v, const value *key)
{
    char name[32] = "";
    if (v->kind == MESSAGES && key->kind == INT) {
        bool exists = (uint64_t)key->number < r->n_messages;
        *v = (value){.kind = exists ? MESSAGE : UNDEFINED, .number = key->number};
        return true;
    }
    if (key->kind != TEXT || key->text.text.n >= sizeof name)
        return fail_here(r, "an index");
    if (key->text.text.n)
        memcpy(name, key->text.text.at, key->text.text.n);
    if (v->kind == MESSAGE) {
        const chat_message *m = &r->messages[v->number];
        *v = (value){0};
        if (!strcmp(name, "role"))
            set_text(v, m->role, false);
        else if (!strcmp(name, "content"))
            set_text(v, m->content, false);
        return true; /* another key: undefined */
    }
    if (v->kind != LOOP)
        return fail_here(r, "a member of what has none");
    int64_t i = (int64_t)r->loops->index, last = (int64_t)r->n_messages - 1;
    *v = (value){.kind = INT, .number = i};
    if (!strcmp(name, "first") || !strcmp(name, "last"))
        set_truth(v, i == (name[0] == 'f' ? 0 : last));
    else if (!strcmp(name, "index"))
        v->number++;
    else if (strcmp(name, "index0") != 0)
        return fail_here(r, "an unknown member of loop");
    return true;
}

static bool key_in_brackets(run *r, value *key)
{
    if (++r->depth > MAX_DEPTH)
        return fail_here(r, "too many brackets");
    bool ok = or_rule(r, key);
    r->depth--;
    return ok && (take(r, "]") || fail_here(r, "a missing ']'"));
}

static bool postfix_rule(run *r, value *out)
{
    bool ok = primary_rule(r, out);
    while (ok) {
        value key = {0};
        char name[32];
        if (take(r, "[")) {
            ok = key_in_brackets(r, &key) && member(r, out, &key);
        } else if (take(r, ".")) {
            ok = take_name(r, name) || fail_here(r, "a name");
            if (ok) {
                set_text(&key, name, true);
                ok = member(r, out, &key);
            }
        } else if (take(r, "|")) {
            ok = (take_word(r, "trim") && out->kind == TEXT) || fail_here(r, "a filter");
            if (ok)
                trim(out);
        } else {
            return true;
        }
        value_free(&key);
    }
    return false;
}

static bool sum_rule(run *r, value *out)
{
    bool ok = postfix_rule(r, out);
    while (ok && (take(r, "+") || take(r, "~"))) {
        value right = {0};
        ok = (out->kind == TEXT || fail_here(r, "a sum of what is not text")) &&
             postfix_rule(r, &right) && append(r, &right, &out->text);
        value_free(&right);
    }
    return ok;
}

static bool compare_rule(run *r, value *out)
{
    if (!sum_rule(r, out))
        return false;
    if (take_word(r, "is")) {
        bool negated = take_word(r, "not");
        if (!take_word(r, "defined"))
            return fail_here(r, "a test");
        set_truth(out, (out->kind != UNDEFINED) != negated);
        return true;
    }
    bool equal = take(r, "==");
    if (!equal && !take(r, "!="))
        return true;
    value right = {0};
    bool ok = sum_rule(r, &right);
    if (ok)
        set_truth(out, is_equal(out, &right) == equal);
    value_free(&right);
    return ok;
}

static bool not_rule(run *r, value *out)
{
    bool negated = take_word(r, "not");
    if (!compare_rule(r, out))
        return false;
    if (negated)
        set_truth(out, !is_true(r, out));
    return true;
}

static bool and_rule(run *r, value *out)
{
    bool ok = not_rule(r, out);
    while (ok && take_word(r, "and")) {
        value right = {0};
        ok = not_rule(r, &right);
        if (ok)
            set_truth(out, is_true(r, out) && is_true(r, &right));
        value_free(&right);
    }
    return ok;
}

static bool or_rule(run *r, value *out)
{
    bool ok = and_rule(r, out);
    while (ok && take_word(r, "or")) {
        value right = {0};
        ok = and_rule(r, &right);
        if (ok)
            set_truth(out, is_true(r, out) || is_true(r, &right));
        value_free(&right);
    }
    return ok;
}

/* -- text and tags -- */

/* Text up to the next "{{", "{%" or "{#". A tag takes the blanks before it on its line, "-" all
 * white space. */
static void plain_text(run *r, bool wanted)
{
    size_t start = r->at, end;
    while (r->at < r->n && !(r->source[r->at] == '{' && r->at + 1 < r->n &&
                             strchr("{%#", r->source[r->at + 1]) && r->source[r->at + 1]))
        r->at++;
    end = r->at;
    bool is_tag = r->at + 2 < r->n && r->source[r->at + 1] != '{';
    bool strips = r->at + 2 < r->n && r->source[r->at + 2] == '-';
    size_t line = end;
    while (line > start && (r->source[line - 1] == ' ' || r->source[line - 1] == '\t'))
        line--;
    if (is_tag && (line == 0 || r->source[line - 1] == '\n'))
        end = line;
    while (strips && end > start && isspace((unsigned char)r->source[end - 1]))
        end--;
    if (wanted)
        chat_parts_add(r->out, r->source + start, end - start, true);
}

/* "}}" or "%}", and the white space it takes along. */
static bool close_tag(run *r, const char *sign)
{
    bool strips = take(r, "-");
    if (!take(r, sign))
        return fail_here(r, "more than was expected");
    if (strips)
        skip_blanks(r);
    else if (sign[0] == '%' && r->at < r->n && r->source[r->at] == '\n')
        r->at++;
    return true;
}

static bool print_rule(run *r, bool wanted)
{
    value v = {0};
    (void)take(r, "-");
    bool ok = or_rule(r, &v) && (!wanted || append(r, &v, r->out)) && close_tag(r, "}}");
    value_free(&v);
    return ok;
}

static bool skip_comment(run *r)
{
    while (r->at + 1 < r->n && !(r->source[r->at] == '#' && r->source[r->at + 1] == '}'))
        r->at++;
    if (r->at + 1 >= r->n)
        return fail_here(r, "a comment without an end");
    r->at += 2;
    if (r->at < r->n && r->source[r->at] == '\n')
        r->at++;
    return true;
}

static bool body(run *r, bool wanted, bool is_inside);

static bool condition(run *r, bool *truth)
{
    value v = {0};
    bool ok = or_rule(r, &v) && close_tag(r, "%}");
    *truth = ok && is_true(r, &v);
    value_free(&v);
    return ok;
}

/* After "if": the bodies up to "endif", of which the first true one counts. */
static bool if_rule(run *r, bool wanted)
{
    bool truth, done = false;
    if (!condition(r, &truth))
        return false;
    for (;;) {
        if (!body(r, wanted && truth && !done, true))
            return false;
        done = done || truth;
        if (take_word(r, "endif"))
            return close_tag(r, "%}");
        if (take_word(r, "elif")) {
            if (!condition(r, &truth))
                return false;
        } else if (take_word(r, "else")) {
            truth = true;
            if (!close_tag(r, "%}"))
                return false;
        } else {
            return fail_here(r, "a tag");
        }
    }
}

/* After "for". Without messages the body is read once, for its end. */
static bool for_rule(run *r, bool wanted)
{
    scope loop = {.outer = r->loops};
    if (!take_name(r, loop.name) || !take_word(r, "in") || !take_word(r, "messages") ||
        !close_tag(r, "%}"))
        return fail_here(r, "a loop over something other than the messages");
    size_t start = r->at, times = wanted ? r->n_messages : 0;
    r->loops = &loop;
    bool ok = r->n_messages > 0 || fail_here(r, "a loop without messages");
    do {
        r->at = start;
        ok = ok && body(r, times > 0, true) && (take_word(r, "endfor") || fail_here(r, "a tag"));
    } while (ok && ++loop.index < times);
    r->loops = loop.outer;
    return ok && close_tag(r, "%}");
}

static bool tag_rule(run *r, bool wanted, bool *ended)
{
    (void)take(r, "{%"); /* plain text ends nowhere else */
    (void)take(r, "-");
    if (take_word(r, "if"))
        return if_rule(r, wanted);
    if (take_word(r, "for"))
        return for_rule(r, wanted);
    *ended = true;
    return true;
}

/* Up to the tag that ends it, which is left to the caller: "{%" is taken, its word is not. */
static bool body(run *r, bool wanted, bool is_inside)
{
    if (++r->depth > MAX_DEPTH)
        return fail_here(r, "tags nested too deep");
    bool ok = true, ended = false;
    while (ok && !ended) {
        plain_text(r, wanted);
        if (++r->n_tags > MAX_TAGS)
            ok = fail_here(r, "too much to do");
        else if (r->at >= r->n)
            ok = !is_inside || fail_here(r, "a tag without its end");
        else if (r->source[r->at + 1] == '#')
            ok = skip_comment(r);
        else if (take(r, "{{"))
            ok = print_rule(r, wanted);
        else
            ok = tag_rule(r, wanted, &ended);
        if (r->at >= r->n && !is_inside)
            break;
    }
    r->depth--;
    if (ok && ended && !is_inside)
        return fail_here(r, "a tag");
    return ok;
}

bool chat_template_write(const char *source, const chat_message *messages, size_t n_messages,
                         bool for_answer, const char *bos, const char *eos, chat_parts *out,
                         chat_why *why)
{
    run r = {.source = source,
             .n = strlen(source),
             .messages = messages,
             .n_messages = n_messages,
             .for_answer = for_answer,
             .bos = bos,
             .eos = eos,
             .out = out,
             .why = why};
    if (r.n == 0)
        return chat_fail(why,
                         "the package has no chat template; with --raw text is continued as it is");
    if (source[r.n - 1] == '\n')
        r.n--; /* Jinja drops the last line's end */
    return body(&r, true, false) && (!out->failed || chat_fail(why, "out of memory"));
}
