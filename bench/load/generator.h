/* generator.h: one load generator process: its share of the clients and of the work, on one worker. */
#pragma once

/* Process @index of those of @options (struct load_options), as processes.h wants it: until the work is done, or
 * SIGTERM or SIGINT comes. @result: struct load_result. If it cannot start, it complains on standard error. */
int generator_run(const void *options, unsigned index, void *result);
