/* link_acceptor.h: takes connections from RAgents on the agent's link address, answers their openings, and hands each
 * open link to the worker it asks for. On the main loop, so that a slow or hostile opening costs the workers nothing.
 */
#ifndef CSSL_SSLAGENT_LINK_ACCEPTOR_H
#define CSSL_SSLAGENT_LINK_ACCEPTOR_H

struct agent;
struct link_acceptor;

#define OPENINGS_MAX       64u /* at the same time; more are closed */
#define OPENING_TIMEOUT_MS 3000u

/* NULL: the address cannot be had (logged). */
struct link_acceptor *link_acceptor_create(struct agent *agent);
/* Closes listener and openings; @on_closed comes once, later, and may destroy. */
void link_acceptor_close(struct link_acceptor *a, void (*on_closed)(void *ctx), void *ctx);
void link_acceptor_destroy(struct link_acceptor *a);

#endif
