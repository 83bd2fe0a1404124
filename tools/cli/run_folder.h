/*
 * Where the processes of one run leave their files: a folder that the user names (--stats DIR/), or
 * a temporary one for reports alone. verb_run.c and verb_record.c call it; it sets variables of
 * the child's environment.
 */
#ifndef CUSPLICE_TOOLS_CLI_RUN_FOLDER_H
#define CUSPLICE_TOOLS_CLI_RUN_FOLDER_H

#include <stdbool.h>

/* Does the value of an option name a folder: by a slash at its end, or since one is there? */
bool cli_folder_is_named(const char *path);
/* Makes the folder if it is not there, and sets `key` to FOLDER/{process}SUFFIX. False, after
 * saying so: `option` names no folder that this user may fill. */
bool cli_folder_take(const char *option, const char *path, const char *key, const char *suffix);
/* --stats DIR/: the same, and reports and the log, where asked for, go there, too. */
bool cli_folder_take_stats(const char *path);

/* A folder that an option named, for what the processes tell the launcher: those on other machines
 * reach it, if it is on storage that all share. NULL: none was named, or others may write there. */
const char *cli_folder_shared(void);

/* Before the program: reports, if `why`, and the log, if a setting asks for it, go into the folder
 * of --stats. False: it cannot be set. */
bool cli_folder_begin(bool why);
/* Behind it, for programs whose end this process sees: names a temporary place for each process's
 * report, if `why` and nothing says where it goes. False: it cannot be set. */
bool cli_folder_gather(bool why);
/* After the program and the hand-shake: prints the report of the one process or the table of
 * several, and removes a temporary folder. */
void cli_folder_end(void);

#endif
