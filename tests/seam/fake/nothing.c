/* A library whose name is all that matters. */
int seam_nothing(void);
int seam_nothing(void) {
    return 0;
}
