/* usage.h: the tables of commands and options for people, as help and as a manual page. */
#pragma once

#include "csslctl/command.h"

/* All commands in a line each. */
void usage_print(FILE *out);
/* One command with its options. */
void usage_print_of(const struct command *c, FILE *out);
/* The commands that begin with @word, each in short; returns how many. */
unsigned usage_print_group(const char *word, FILE *out);
/* A manual page, for man(7). */
void manual_print(FILE *out);

/* "move ID AGENT", "drain NAME [--timeout TIME] [--wait]" */
#define SYNOPSIS_MAX 256u
void synopsis_of(const struct command *c, char out[static SYNOPSIS_MAX]);
