/* preamble_inside.h: shared by the files of the preamble only. */
#pragma once

#include "net/loop/wheel.h"
#include "net/socket/endpoints.h"
#include "smtp/preamble.h"
#include "sslagent/preamble/preamble.h"

struct preamble_relay;

/* The rules of one listener. */
struct preamble_rules {
	struct smtp_preamble_rules rules;
	struct smtp_ehlo offers;
};

enum preamble_state { PREAMBLE_TALKING, PREAMBLE_RELAYING, PREAMBLE_ENDED };
/* FINISHING: the agent has to send 421 and end. */
enum preamble_wish { PREAMBLE_GOES_ON, PREAMBLE_FINISHING };
enum preamble_pace { PREAMBLE_AT_WORK, PREAMBLE_PAUSED };
enum preamble_client { PREAMBLE_CLIENT_SPEAKS, PREAMBLE_CLIENT_ENDED };

struct preamble {
	struct preamble_home *home;
	struct preamble_carrier *carrier;
	const struct conf_listener *listener;
	struct preamble *next; /* buried */
	struct connection_id id;
	struct endpoints endpoints;
	struct deadline deadline;
	struct smtp_preamble dialogue;
	struct preamble_relay *relay; /* RELAYING */
	uint64_t taken;               /* bytes read from the client */
	uint64_t said, drained;       /* bytes for the client: sent, and received by it */
	uint8_t state;                /* enum preamble_state */
	uint8_t wish;                 /* enum preamble_wish */
	uint8_t client;               /* enum preamble_client */
	uint8_t pace;                 /* enum preamble_pace */
	uint8_t greeted;              /* enum smtp_preamble_state before the last line */
	uint8_t reason;               /* FINISHING: enum end_reason */
};

void preamble_say(struct preamble *p, const void *words, size_t len, enum preamble_words what);
/* Send a reply of the agent's own, and end. */
void preamble_end_saying(struct preamble *p, enum end_reason reason, enum smtp_own words);
void preamble_end(struct preamble *p, enum end_reason reason, enum preamble_end how);

/* preamble_relay.c */
/* @held is the line that began the mail. The preamble may have ended when one of these functions returns. */
void preamble_relay_begin(struct preamble *p, struct smtp_span held);
size_t preamble_relay_read(struct preamble *p, const uint8_t *data, size_t len);
/* Continue after an event: the client received bytes, the client ended, or 421 is due. */
void preamble_relay_look(struct preamble *p);
/* Both sides were silent for too long: 421. IDLE_TIMEOUT does nothing while the reply to the end of a mail is due,
 * which has a longer limit. */
void preamble_relay_time_out(struct preamble *p, enum end_reason reason);
void preamble_relay_drop(struct preamble *p);
