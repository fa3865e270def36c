/* talk.h: a client that speaks in clear with an agent through the dispatcher, for the facts of preambles. */
#pragma once

#include "ragent/connection/connection_body.h"
#include "tests/unit/ragent/dispatcher.h"

/* Keys of its listener. */
#define MAIL                                                                                                           \
	"    affinity_bound: off\n    service: smtp\n    smtp: { hostname: mx.example, client_address: hidden, "       \
	"preamble_timeout: 100ms }\n"
#define SLOW     "    affinity_bound: off\n    service: smtp\n    smtp: { hostname: mx.example, client_address: hidden }\n"
#define BANNER   "220 mx.example ESMTP\r\n"
#define STARTTLS "STARTTLS\r\n"
#define READY    "220 2.0.0 Ready to start TLS\r\n"
#define LEAVING  "421 4.3.2 Service is shutting down, try again\r\n"
#define WHOLE    (FRAME_PLAINTEXT | FRAME_REPLY_COMPLETE)

extern struct talk {
	int fd, agent;
	uint32_t stream;
} t;

/* How many connections ended for this reason. */
uint64_t ended(enum end_reason reason);
/* A client that an agent heard of. */
void talk_begin(void);
/* @f gave the client's preamble to @agent. Frees @f. */
void talk_taken_by(struct fake_frame *f, int agent);
/* A client that has got the banner. */
void talk_greeted(void);
void client_says(const char *words);
void agent_says(const char *words, uint8_t flags);
void agent_hears(const char *words);
void agent_took(uint64_t bytes);
/* STARTTLS and its answer; the client has not read that yet. */
void starttls(void);
/* The client was reset for bytes in clear where TLS had to begin. */
void expect_injection(void);
