/* control.h: the control API of smtpproxy: HTTP and JSON on a UNIX socket. It only answers questions; nothing is
 * changed through it.
 */
#ifndef CSSL_SMTPPROXY_CONTROL_H
#define CSSL_SMTPPROXY_CONTROL_H

#include "smtpproxy/control/answers.h"

struct control;

/* Listen at @path, with mode 0600; @view lives longer. NULL with @error. */
struct control *control_create(
	struct worker *w, const char *path, const struct control_view *view, char *error, size_t error_cap);

/* NULL is legal. The memory is freed once its handles have closed. */
void control_destroy(struct control *c);

#endif
