/* Variables of a PTX text: the device memory that its `.global` and `.const` declarations ask for,
 * which the text's own length says nothing of (`.global .align 4 .b8 buffer[1073741824];`).
 *
 * Not a parser of PTX: a declaration begins with its state space as a word of its own, outside of
 * parentheses (parameters name state spaces, too), and ends at `;`. Those that are `.extern` are
 * elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"

struct text { const char *at, *end; };

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Past a comment, if there is one. */
static bool past_comment(struct text *text)
{
    if (text->end - text->at < 2 || text->at[0] != '/' ||
        (text->at[1] != '/' && text->at[1] != '*'))
        return false;
    bool is_line = text->at[1] == '/';
    for (text->at += 2; text->at < text->end; text->at++) {
        if (is_line ? *text->at == '\n' : *text->at == '/' && text->at[-1] == '*') {
            text->at++;
            break;
        }
    }
    return true;
}

/* The next word and its length, or a single other character; 0: the end. */
static size_t next_word(struct text *text, const char **word)
{
    while (text->at < text->end &&
           (strchr(" \t\r\n", *text->at) ? text->at++, true : past_comment(text))) {
    }
    *word = text->at;
    while (text->at < text->end && is_of_word(*text->at))
        text->at++;
    if (text->at == *word && text->at < text->end)
        text->at++;
    return (size_t)(text->at - *word);
}

static bool is(const char *word, size_t length, const char *other)
{
    return length == strlen(other) && !memcmp(word, other, length);
}

/* Bytes of `.u32`, `.b8`, `.f16x2`; 0: no such type. */
static uint64_t type_bytes(const char *word, size_t length)
{
    if (length < 3 || word[0] != '.' || !strchr("busf", word[1]) || !is_digit(word[2]))
        return 0;
    uint64_t bits = 0;
    size_t at = 2;
    for (; at < length && is_digit(word[at]) && bits < 1024; at++)
        bits = 10 * bits + (uint64_t)(word[at] - '0');
    return (bits + 7) / 8 *
           (length - at == 2 && word[at] == 'x' ? (uint64_t)(word[at + 1] - '0') : 1);
}

static uint64_t number(const char *word, size_t length)
{
    uint64_t base = 10, value = 0;
    size_t at = 0;
    if (length > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X'))
        base = 16, at = 2;
    for (; at < length; at++) {
        char c = word[at] | 0x20;
        uint64_t digit = is_digit(word[at])     ? (uint64_t)(word[at] - '0')
                         : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
                                                : base;
        if (digit >= base)
            break;
        value = plus(times(value, base), digit);
    }
    return value;
}

/* Behind the state space: `.align 4 .v2 .f32 a, b[2][3] = {...};` */
static uint64_t declared(struct text *text)
{
    uint64_t each = 8, vector = 1, sum = 0, one = 0;
    const char *word;
    size_t length;
    bool is_skipped = false; /* an alignment, an attribute, an initial value */
    int depth = 0;
    while ((length = next_word(text, &word)) && *word != ';') {
        if (*word == '(' || *word == '{')
            depth++;
        else if (*word == ')' || *word == '}')
            depth--;
        else if (depth)
            continue;
        else if (*word == '=')
            is_skipped = true;
        else if (*word == ',')
            sum = plus(sum, one), one = 0, is_skipped = false;
        else if (is(word, length, ".align"))
            next_word(text, &word);
        else if (is(word, length, ".v2") || is(word, length, ".v4"))
            vector = (uint64_t)(word[2] - '0');
        else if (type_bytes(word, length))
            each = type_bytes(word, length);
        else if (*word == '[' && !is_skipped && (length = next_word(text, &word)) && *word != ']')
            one = times(one, number(word, length));
        else if (is_of_word(*word) && *word != '.' && !is_digit(*word) && !is_skipped)
            one = times(each, vector);
    }
    return plus(sum, one);
}

uint64_t vg_ptx_globals(const char *start, size_t length)
{
    struct text text = {start, start + length};
    uint64_t sum = 0;
    const char *word;
    int depth = 0;
    bool is_extern = false;
    while ((length = next_word(&text, &word))) {
        if (*word == '(')
            depth++;
        else if (*word == ')')
            depth -= depth > 0;
        else if (*word == ';' || *word == '{' || *word == '}')
            is_extern = false;
        else if (is(word, length, ".extern"))
            is_extern = true;
        else if (!depth && (is(word, length, ".global") || is(word, length, ".const"))) {
            uint64_t bytes = declared(&text);
            sum = is_extern ? sum : plus(sum, bytes);
            is_extern = false;
        }
    }
    return sum;
}
