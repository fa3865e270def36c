/* session_peers.h: sessions of smtpproxy, and the test as their senders and their receiver, on sockets of the loopback.
 */
#pragma once

#include "smtpproxy/sender/session.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"

#define SENDERS   4u
#define RECEIVERS 4u

/* RELAYS: senders to the one receiver. FILTERS: the same; a milter judges the mail: peer 0 of milter_peer.h. CHOOSES:
 * senders say in their header where they want to go. */
enum door { DOOR_RELAYS, DOOR_FILTERS, DOOR_CHOOSES };

/* Check's: a worker and a proxy whose file may still be changed. */
void sessions_setup(void);
void sessions_teardown(void);

extern struct sender_home home;
extern struct smtpproxy_counters *session_counters;
extern struct conf_smtpproxy *session_conf;

/* Sender @n connects from the cluster's address. No byte has come. */
void sender_connects(unsigned n, enum door door);
/* The same, and has sent its header, with @client "192.0.2.1", and has read the banner. */
void sender_comes_from(unsigned n, enum door door, const char *client);
void sender_comes(unsigned n, enum door door);
/* NULL: it is over. */
struct session *session_of(unsigned n);
int sender_fd(unsigned n);

void sender_says(unsigned n, const char *text);
/* The next reply, to its last line; it begins with that. All of it is in `heard`. */
extern char heard[4096];
void sender_hears(unsigned n, const char *beginning);
/* FIN comes, and no byte before. */
void sender_hears_end(unsigned n);
void sender_hears_nothing(unsigned n);
/* With FIN, also of commands that were not read. */
void sender_closes(unsigned n);
void sender_resets(unsigned n);

/* The sender asks "EHLO sender.example", and the receiver, if it is asked, offers this besides its name:
 * "250-SIZE\r\n250 DSN\r\n". It is connection 0 then. */
void sender_greets(unsigned n, const char *offers);
/* Up to the reply to DATA. The receiver takes all. */
void sender_begins_message(unsigned n, unsigned receiver);

/* A connection of the proxy to the receiver: accepted; and greeted with these offers. */
void receiver_accepts(unsigned n);
void receiver_greets(unsigned n, const char *offers);
int receiver_is_asked(void); /* a connection waits to be accepted */
/* The next line, which is that; any: NULL. It is in `heard`. */
void receiver_hears(unsigned n, const char *line);
void receiver_hears_nothing(unsigned n);
/* FIN or a reset comes; `heard` has all bytes before. 0: FIN, -1: reset. */
int receiver_hears_end(unsigned n);
void receiver_says(unsigned n, const char *text);
void receiver_closes(unsigned n);
