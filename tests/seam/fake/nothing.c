/* An empty library; only its name matters. */
int seam_nothing(void);
int seam_nothing(void) {
    return 0;
}
