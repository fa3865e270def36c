/* control.h: the control API of smtpproxy: HTTP and JSON on a UNIX socket. It answers questions, and takes an
 * operator's orders for the queue.
 */
#pragma once

#include "smtpproxy/control/answers.h"

struct control_socket;

/* Listen at @path, with mode 0600, or take over @fd (not -1), which listens there. @view has to outlive it. NULL
 * with @error.
 */
struct control_socket *control_socket_create(
	struct worker *w, const char *path, int fd, const struct control_view *view, char *error, size_t error_cap);

/* The listening socket. The control keeps it. */
int control_socket_fd(const struct control_socket *c);

/* NULL is legal. The memory is freed when its handles are closed. */
void control_socket_destroy(struct control_socket *c);

/* A UNIX socket for other programs of this host, as RAgent's dashboard. Whoever connects gets one JSON object
 * (summary_make()), and the end. Nothing that it sends is read as a question, so nobody can change anything by it. */

struct status_socket;

/* Listen at @path, with mode 0666, or take over @fd (not -1), which listens there. @view has to outlive it. NULL with
 * @error. */
struct status_socket *status_socket_create(
	struct worker *w, const char *path, int fd, const struct control_view *view, char *error, size_t error_cap);

/* The listening socket, still its own. */
int status_socket_fd(const struct status_socket *s);

/* NULL is legal. The memory is freed when its handles are closed. The path stays. */
void status_socket_destroy(struct status_socket *s);
