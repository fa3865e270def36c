/* background.h: a process that goes into the background once it is what it was started for. */
#ifndef CSSL_RAGENT_BACKGROUND_H
#define CSSL_RAGENT_BACKGROUND_H

/* Before any thread: the caller goes on as a process of its own, a child of init. The one that was started waits for
 * background_settle() and exits with what that says, or with EXIT_FAILURE when this one ends before. 0 or -1. */
int background_begin(void);
/* @status: EXIT_SUCCESS or EXIT_FAILURE. Once; later calls, and those without background_begin(), do nothing. */
void background_settle(int status);

#endif
