/* The library after scope_a. */
const char *scope_text(void);
const char *scope_text(void) {
    return "b";
}
