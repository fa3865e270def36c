/* control_routes.h: finds the route of a request: method, path, query. It is a part of its own because the list of
 * routes is also the index (GET /v1), and says which role a request needs. The control socket (control.c) asks for the
 * role when the headers have come, and follows the route when the request is whole.
 */
#pragma once

#include "ragent/control/access/control_tokens.h"

struct exchange;
struct operations;

extern const char openapi_text[]; /* openapi.yaml, which describes the control API */

/* When this returns, @e was answered, or an operation holds its request. */
void control_routes_follow(struct operations *o, struct exchange *e);

/* The role that a request needs. A method that the path does not have needs only the role read, because it changes
 * nothing. */
enum control_role control_routes_role(const char *method, const char *path);
