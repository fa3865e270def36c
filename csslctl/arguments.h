/* arguments.h: from a command line to a command with its operands and options. Options may stand anywhere; behind "--"
 * everything is an operand. */
#ifndef CSSL_CSSLCTL_ARGUMENTS_H
#define CSSL_CSSLCTL_ARGUMENTS_H

#include "csslctl/command.h"

#define ARGUMENTS_ERROR_MAX 512u

/* 0: @in has command, operands and options (command NULL: none was named). CSSL_E_CONFIG: @error is a sentence that
 * says what is wrong and what would be right; what had been understood by then stands in @in. */
int arguments_parse(int argc, char *const *argv, struct invocation *in, char error[static ARGUMENTS_ERROR_MAX]);

#endif
