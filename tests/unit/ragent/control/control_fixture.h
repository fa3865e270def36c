/* control_fixture.h: a control socket on the test's own loop, operations that note what they are asked and leave the
 * answer to the test, and a client of plain socket calls. */
#pragma once

#include <jansson.h>

#include "ragent/control/control.h"
#include "ragent/control/operations/operations.h"
#include "tests/unit/net/fixture.h"

#define ID_TEXT "000102030405060708090a0b0c0d0e0f"

extern struct control *control; /* NULL after control_stop() */
extern const char *control_path;

/* The operation that was asked last. */
extern struct asked {
	unsigned calls;
	const char *what;                /* its name */
	struct control_request *request; /* not answered yet, the test answers */
	struct control_input in;         /* its pointers are NULL or point into this struct */
	char agent[80], query_agent[80], listener[64], node[80], level[16], server_name[256];
} asked;

/* Check's; tearing down asserts that every handle was closed. */
void setup_control(void);         /* with the default limits */
void setup_control_hurried(void); /* 60 ms for everything, 3 connections */
void setup_control_patient(void); /* 60 ms for the client, but long for the operation */
void setup_control_crowded(void); /* 3 connections, nothing has an end in time */
void teardown_control(void);
/* Run @facts, each with a fresh control; 0, or 1 when any failed. */
int control_facts_run(const char *name, void (*setup)(void), const TTest *const *facts, size_t count);

void control_stop(void);

/* A connection to the socket; -1 when it is refused. */
int client_connect(void);
/* The same to an address over TCP. */
int client_connect_to(const struct sockaddr_storage *address);
void client_send(int fd, const char *text);

/* One answer. */
struct reply {
	unsigned status;
	char allow[64], type[64];
	json_t *body;
	char error[512]; /* member "error" of the body, or "" */
};
/* Turn the loop until it is there. */
struct reply client_read(int fd);
void reply_free(struct reply *r);

/* Send a whole request; @body NULL: without. */
void client_request(int fd, const char *method, const char *path, const char *body);

/* Connect, send, turn until an operation was asked. The descriptor. */
int client_ask(const char *method, const char *path, const char *body);
/* Connect, send, read the answer (no operation is asked, or it answers within). */
struct reply client_get(const char *method, const char *path, const char *body);
