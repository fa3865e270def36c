/* ragent_handover.c: lets another process replace this one, and lets this one replace another. The handover socket
 * is beside the control socket, and has the same owner and mode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/daemon.h"
#include "net/fault.h"
#include "net/log.h"
#include "proto/error.h"
#include "ragent/handover/handover_offer.h"
#include "ragent/process/ragent_internal.h"

const char *ragent_handover_path(const struct ragent *r, char out[static HANDOVER_PATH_MAX])
{
	snprintf(out, HANDOVER_PATH_MAX, "%s.handover", r->shared.self->control);
	return out;
}

/* --- being replaced --- */

static int put_sockets(void *ctx, struct handover_message *m)
{
	struct ragent *r = ctx;
	const struct conf_ragent *self = r->shared.self;
	char key[NOTES_KEY_MAX];
	int result =
		handover_socket_pack(m, passed_key_of_path(key, "control", self->control), 0, control_fd(r->control));

	if (result < 0 || control_address_fd(r->control) < 0)
		return result;
	passed_key_of_listener(key, "control", (const struct sockaddr *)&self->control_address);
	return handover_socket_pack(m, key, 0, control_address_fd(r->control));
}

static const char *why_not(void *ctx)
{
	const struct ragent *r = ctx;

	return r->operations.state == OPERATIONS_RUNNING ? NULL : "it is stopping";
}

static void on_replaced(void *ctx)
{
	struct ragent *r = ctx;

	control_pause(r->control); /* for good: the socket file belongs to the other process now */
	ragent_stop(r);
}

static int bind_handover(struct ragent *r, struct passed_sockets *passed, char *error, size_t cap)
{
	char path[HANDOVER_PATH_MAX], key[NOTES_KEY_MAX];
	const struct handover_giver_params p = {
		.main = r->main,
		.shared = &r->shared,
		.threads = r->threads,
		.workers = r->workers,
		.worker_count = r->worker_count,
		.put_sockets = put_sockets,
		.why_not = why_not,
		.on_replaced = on_replaced,
		.ctx = r,
	};

	ragent_handover_path(r, path);
	int fd = passed_sockets_take(passed, passed_key_of_path(key, "handover", path), 0);
	r->giver = handover_giver_create(&p, path, fd, error, cap);
	if (!r->giver)
		return CSSL_E_SYSTEM;
	if (r->taker || r->leftovers)
		handover_giver_pause(r->giver);
	return 0;
}

static int bind_address(struct ragent *r, struct passed_sockets *passed, char *error, size_t cap)
{
	const struct conf_ragent *self = r->shared.self;
	const struct sockaddr *address = (const struct sockaddr *)&self->control_address;
	char key[NOTES_KEY_MAX];

	if (address->sa_family == AF_UNSPEC)
		return 0;
	const struct control_front front = { .address = address,
		.proxy_protocol = self->control_proxy_protocol,
		.tokens = self->control_tokens,
		.fd = passed_sockets_take(passed, passed_key_of_listener(key, "control", address), 0) };
	if (control_serve_address(r->control, &front, error, cap) == 0)
		return 0;
	if (!r->leftovers)
		return CSSL_E_CONFIG;
	log_event(LOG_ERROR, NULL, "control address not served", "cause=%s effect=\"the UNIX socket still serves\"",
		error);
	return 0; /* after a death, clients are served first */
}

int ragent_bind_control(struct ragent *r, struct passed_sockets *passed, char *error, size_t error_cap)
{
	const char *path = r->shared.self->control;
	char key[NOTES_KEY_MAX];

	if (!path)
		return 0;
	int fd = passed_sockets_take(passed, passed_key_of_path(key, "control", path), 0);
	r->control = control_create(r->main, fd, path, &r->operations, NULL, error, error_cap);
	int result = r->control ? bind_address(r, passed, error, error_cap) : CSSL_E_SYSTEM;
	if (result == 0 && (r->taker || r->leftovers))
		control_pause(r->control);
	return result == 0 ? bind_handover(r, passed, error, error_cap) : result;
}

/* --- replacing --- */

int ragent_ask_running(struct ragent *r, char *error, size_t error_cap)
{
	char path[HANDOVER_PATH_MAX];

	if (!r->shared.self->control) {
		snprintf(error, error_cap, "cannot replace a process that has no control socket");
		return CSSL_E_CONFIG;
	}
	r->taker = handover_taker_create(ragent_handover_path(r, path), &r->shared, error, error_cap);
	if (!r->taker)
		return CSSL_E_SYSTEM;
	return fault_at("handover.offered", NULL, NULL) == FAULT_FAIL ? CSSL_E_SYSTEM : 0;
}

void ragent_open_control(struct ragent *r)
{
	control_resume(r->control);
	if (r->giver)
		handover_giver_resume(r->giver);
}

static void serve(struct ragent *r)
{
	ragent_open_control(r);
	ragent_serve(r);
	background_settle(EXIT_SUCCESS);
}

static void unlisten(struct worker *w, void *arg)
{
	ragent_worker_unlisten(arg);
}

static void on_end(void *ctx, enum taker_result result, const char *cause)
{
	struct ragent *r = ctx;

	if (r->operations.state != OPERATIONS_RUNNING)
		return;
	switch (result) {
	case TAKER_HAS_ALL:
		log_event(LOG_INFO, NULL, "took over", "connections=%u", admission_total(r->shared.admission));
		serve(r);
		break;
	case TAKER_IS_ALONE:
		log_event(LOG_ERROR, NULL, "took over only a part of the connections",
			"cause=\"the old process died\" effect=\"the connections that it still had are lost\"");
		serve(r);
		break;
	case TAKER_HAS_SOME:
		log_event(LOG_ERROR, NULL, "took over only a part of the connections",
			"cause=%s remedy=\"the old process goes on serving; stop this one when it has no connections "
			"left\"",
			cause);
		for (unsigned i = 0; i < r->worker_count; i++)
			worker_post(r->threads[i], unlisten, r->workers[i]);
		background_settle(EXIT_FAILURE);
		break;
	case TAKER_HAS_NOTHING:
		log_event(LOG_ERROR, NULL, "not taken over", "cause=%s", cause);
		fprintf(stderr, "ragent: not replaced: %s\n", cause);
		r->result = CSSL_E_STATE;
		ragent_stop(r);
		break;
	}
}

void ragent_take_over(struct ragent *r)
{
	const struct handover_taker_params p = {
		.main = r->main,
		.threads = r->threads,
		.workers = r->workers,
		.worker_count = r->worker_count,
		.on_end = on_end,
		.ctx = r,
	};

	handover_taker_begin(r->taker, &p);
}
