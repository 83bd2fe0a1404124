/*
 * Writes manual pages in the language of man(7), on stdout. The pages of man.c and man_conf.c call
 * it, on one thread. Text is escaped, and filled to lines that stay short.
 */
#ifndef CUSPLICE_TOOLS_CLI_ROFF_H
#define CUSPLICE_TOOLS_CLI_ROFF_H

#include <stdbool.h>
#include <stddef.h>

/* "cusplice-run", 1, "run a program". */
void roff_head(const char *name, int section, const char *summary);
void roff_section(const char *name);
void roff_paragraph(void);
/* What follows up to roff_item_text is the term of an item; then comes its text. */
void roff_item(void);
void roff_item_text(void);
void roff_break(void);
/* A mark behind the last word, such as the end of a sentence. */
void roff_mark(char mark);

/* `bytes` of text, word by word. */
void roff_text(const char *text, size_t bytes);
void roff_words(const char *text);
/* The same as one word in a font: 'B' or 'I'. */
void roff_font(char font, const char *text);
/* How something is called: options are bold, names of values italic. */
void roff_usage(const char *text, size_t bytes);
/* Lines as they stand, indented. */
void roff_lines(const char *text, size_t bytes);
/* "NAME(1), NAME(5)". */
void roff_see(const char *name, int section, bool last);
void roff_end(void);

#endif
