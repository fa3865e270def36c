/* arguments.h: from a command line to a command with its operands and options. Options may stand anywhere; after "--"
 * everything is an operand. */
#pragma once

#include "csslctl/command.h"

#define ARGUMENTS_ERROR_MAX 512u

/* 0: @in has command, operands and options (command NULL: none was named). CSSL_E_CONFIG: @error is a sentence with the
 * fault and its remedy; @in has the parts that were understood before. */
int arguments_parse(int argc, char *const *argv, struct invocation *in, char error[static ARGUMENTS_ERROR_MAX]);
