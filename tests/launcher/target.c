/* The program that the launcher's tests start. It executes its arguments in turn. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void say_signal(int number) {
    char text[] = "got 00\n";
    text[4] = (char)('0' + number / 10);
    text[5] = (char)('0' + number % 10);
    if (write(1, text, sizeof text - 1) < 0)
        _exit(1);
    _exit(0);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        const char *value = equals ? equals + 1 : "";
        size_t bytes = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        if (strncmp(argv[i], "env", bytes) == 0) {
            printf("%s=%s\n", value, getenv(value) ? getenv(value) : "(unset)");
        } else if (strncmp(argv[i], "out", bytes) == 0) {
            printf("%s\n", value);
        } else if (strncmp(argv[i], "cat", bytes) == 0) {
            int c;
            while ((c = getchar()) != EOF)
                putchar(c);
        } else if (strncmp(argv[i], "exit", bytes) == 0) {
            exit(atoi(value));
        } else if (strncmp(argv[i], "kill", bytes) == 0) {
            fflush(stdout);
            raise(atoi(value));
        } else if (strncmp(argv[i], "wait", bytes) == 0) {
            signal(atoi(value), say_signal);
            printf("ready\n");
            fflush(stdout);
            sleep(30);
        } else {
            fprintf(stderr, "target: what is %s?\n", argv[i]);
            return 99;
        }
    }
    return 0;
}
