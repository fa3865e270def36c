/* connection_internal.h: declarations that only the connection's own files use: connection_events.c (the reaction to
 * each event in each state), connection.c (life and handshake), connection_flow.c (records both ways),
 * connection_consumed.c (client records that are done, KeyUpdates that come too often), connection_between.c (services
 * that say something themselves), connection_holding.c (bytes kept, incomplete heads of requests), connection_ends.c
 * (ends of either side), connection_backend.c, connection_export.c (what a successor needs), connection_adopt.c
 * (SSL_ID), connection_recover.c (SSL_ID after a loss), connection_move.c (MOVE), connection_settle.c (MOVE that waits
 * for a checkpoint).
 */
#ifndef CSSL_SSLAGENT_CONNECTION_INTERNAL_H
#define CSSL_SSLAGENT_CONNECTION_INTERNAL_H

#include "sslagent/backend/backend.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection.h"
#include "sslagent/connection/connection_events.h"
#include "sslagent/connection/recovery.h"

/* connection.c */
void connection_to(struct connection *c, enum connection_state to);
bool connection_serves(const struct connection *c); /* is it its owner, in the midst of things? */
struct connection *connection_create(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints,
	enum connection_state first);
/* Tell the carrier and release everything. @c may still be read until the end of this loop turn (state ENDED). */
void connection_end(struct connection *c, enum end_reason reason, enum carrier_end how);
void connection_drop_handshake(struct connection *c);

/* connection_events.c */
extern const struct backend_user_ops connection_backend_ops;
void connection_on_deadline(struct deadline *d);

/* connection_flow.c */
void connection_start_owning(
	struct connection *c); /* OWNER: open the backend if the service speaks first, take what waits */
void connection_open_input(struct connection *c);
void connection_open_waiting(struct connection *c);         /* the same if it serves and something waits */
size_t connection_fragment_max(const struct connection *c); /* plaintext of one record */
uint64_t connection_credit(const struct connection *c);     /* bytes of records the client has room for */
void connection_pump(struct connection *c);                 /* whatever became possible: seal, open, end */
void connection_say_due(struct connection *c);              /* KeyUpdate or warning that the record layer owes */
/* Seal [data, data + len) into records of one frame. Returns the bytes sealed. */
size_t connection_seal(struct connection *c, const uint8_t *data, size_t len);
int connection_send_alert(
	struct connection *c, enum tls_alert_level level, enum tls_alert description); /* 0 or negative */
/* Returns how many bytes of @data the backend has then: all, except those of the next request while it settles; or
 * negative. */
ptrdiff_t connection_give_to_backend(struct connection *c, const uint8_t *data, size_t len);

/* connection_consumed.c */
bool connection_at_checkpoint(const struct connection *c);
void connection_reach_checkpoint(struct connection *c); /* the carrier hears of it now */
void connection_mark(struct connection *c);             /* opening reached a record boundary */
void connection_reach_marks(struct connection *c);      /* more was written to the backend */
void connection_report(struct connection *c);           /* tell now what was consumed and not told */
/* A report is not due: until the next one, the deadline is the head's, or the time when more may be opened. */
void connection_arm(struct connection *c);
void connection_judge_pace(struct connection *c); /* a KeyUpdate was opened, or more than one before it is the owner */
/* With a report, unless the carrier knows it. Not if it is frozen or has ended. */
void connection_tell_pace(struct connection *c);
void connection_stand_here(struct connection *c); /* what was opened so far is consumed, and RAgent knows it */

/* connection_holding.c */
/* Whole records have to wait to be opened. 0, CSSL_E_FULL or CSSL_E_NO_MEMORY. */
int connection_input_keep(struct connection *c, const struct tls_record *records, size_t count);
/* The record at offset @at of the input, 0 for the first. Returns the offset of the next one. Valid until the input
 * changes. */
uint32_t connection_input_record(const struct connection *c, uint32_t at, struct tls_record *out);
/* The first @count records, up to offset @at, were used. Or: none is needed any more. */
void connection_input_used(struct connection *c, uint32_t at, uint32_t count);
void connection_input_drop(struct connection *c);
/* It may keep more or fewer bytes than before: count them again. */
void connection_weigh(struct connection *c);
/* Above the budget: end the connections that keep most. May end any connection. */
void connection_relieve(struct connection_home *home);

/* Plaintext that is kept, and wiped. NULL: none. */
struct kept_bytes {
	uint32_t len, cap;
	uint8_t bytes[];
};
int connection_keep(struct kept_bytes **k, const uint8_t *data, size_t len); /* 0 or CSSL_E_NO_MEMORY */
void connection_wipe(struct kept_bytes **k);

/* 1: the client's bytes since the last checkpoint are a part of one head, and no backend is needed yet. */
bool connection_head_waits(const struct connection *c);
int connection_give_head(struct connection *c); /* to the new backend connection. 0 or negative */
/* The backend gets these bytes. They are kept for another one if it has answered before, and no more than a head. */
void connection_keep_asked(struct connection *c, const uint8_t *data, size_t len);
int connection_give_asked(struct connection *c);  /* there are some: to the new backend connection. 0 or negative */
void connection_drop_asked(struct connection *c); /* until the next checkpoint nothing can be asked again */
bool connection_only_blank_waits(const struct connection *c); /* 1: bytes wait, but no request has begun in them */
/* Something of a request came, or it serves again. May begin with the backend, and may end the connection. */
void connection_watch_head(struct connection *c);
void connection_head_is_late(struct connection *c);

/* connection_ends.c. Each may end the connection: check its state afterwards. */
/* Send the words that the service has now, if there is room. Returns the bytes sent. */
size_t connection_say_words(struct connection *c);
/* Counts and logs that the client or the backend broke the service's protocol. */
void connection_note_broken(const struct connection *c);
/* The service wants the conversation to end: send the reason, and end. */
void connection_part(struct connection *c, enum service_parting why);
bool connection_cuts_nothing(const struct connection *c); /* 1: an end now is one in order */
/* OWNER: send @words as soon as that is allowed, and end. */
void connection_finish(struct connection *c, enum last_words words, enum end_reason reason);
void connection_say_last_words(struct connection *c); /* ENDING: if they are allowed now */
void connection_finish_if_over(
	struct connection *c); /* the client said its last, the backend has it and has answered */
void connection_close_towards_backend(struct connection *c); /* close_notify of the client */
void connection_close_towards_client(struct connection *c);  /* the backend's end, a whole one */
void connection_violated(struct connection *c, enum tls_alert alert, enum end_reason reason);
void connection_take_tail(struct connection *c); /* FIN or VIOLATION, when all records before are opened */
void connection_backend_said_last(struct connection *c, enum stream_end end); /* whatever it says or does behind that */
void connection_backend_unreachable(struct connection *c);

/* connection_backend.c */

/* MOVE: for as long as the move may wait. */
struct ordered_move {
	char target[64];
	uint16_t next_epoch;
	uint64_t until_ms; /* so long it may wait for a checkpoint; 0: not at all */
};

/* A move with an open backend conversation that waits for the target's receipt. */
struct connection_pass {
	struct connection *connection; /* NULL: it has ended */
	struct ordered_move order;
	enum { PASS_DRAINING, PASS_UNDER_WAY, PASS_ANSWERED } step;
};

int connection_ensure_backend(struct connection *c); /* it gets first what was kept of a head. 0 or negative */
/* The backend connection has ended, and there are bytes that it was asked: a new one is. 0 or negative */
int connection_ask_anew(struct connection *c);
/* Bytes of the client, for a backend now, or when the head that they belong to is complete. 0 or negative. */
int connection_write_to_backend(struct connection *c, const uint8_t *data, size_t len);
void connection_release_backend(struct connection *c, enum end_reason reason);
void connection_reuse_backend(struct connection *c); /* gives it to the pool if it may serve another conversation */
int connection_describe_backend(struct connection *c, struct passed_backend *out);
int connection_restore_backend(struct connection *c, struct passed_backend *p);

void connection_backend_id(const struct connection *c, const uint8_t **id, size_t *len); /* len 0: it is not told */

/* connection_between.c: services that stand between. Each may end the connection. */
int connection_own_between(struct connection *c);         /* 0 or CSSL_E_NO_MEMORY; other services: 0 */
void connection_step_between(struct connection *c);       /* passes on all output of the service */
bool connection_seal_replies(struct connection *c);       /* 1: none waits any more, or it ended */
bool connection_replies_wait(const struct connection *c); /* 1: the client has to take some; other services: 0 */
void connection_read_between(struct connection *c);
ptrdiff_t connection_give_to_service(struct connection *c, const uint8_t *data, size_t len); /* as to the backend */
size_t connection_hear_backend(struct connection *c, const uint8_t *data, size_t len);
void connection_backend_left_service(struct connection *c, int uv_error);             /* it ended; 0: not by an error */
void connection_move_between(struct connection *c, const struct ordered_move *order); /* OWNER */
void connection_leave_settled(struct connection *c, const struct ordered_move *order); /* OWNER, at a checkpoint */
void connection_leave_without_backend(struct connection *c);                           /* likewise */

/* connection_move.c */
void connection_begin_pass(struct connection *c, const struct ordered_move *order);
void connection_drop_pass(struct connection *c); /* the connection ended meanwhile */

bool connection_backend_may_stay(const struct connection *c); /* nobody waits for anything of it */
bool connection_backend_is_alone(const struct connection *c); /* and no other can go on with the conversation */
void connection_hand_off(
	struct connection *c, Cssl__BackendHalf backend);    /* freeze, towards an agent that adopts now */
void connection_stay(struct connection *c, const char *why); /* REFUSED */

/* connection_settle.c */
/* Why it waits for a checkpoint. STRAND: no agent can go on with its backend connection. So the client is asked to
 * leave, and the connection ends; or, if the client does not read meanwhile, moves without its backend connection. */
enum settling { SETTLES_TO_MOVE, SETTLES_TO_END, SETTLES_TO_STRAND };
#define LEAVE_MS 1000u /* so long a client that asks for nothing may take to see that it has to leave */
/* OWNER. */
void connection_settle(struct connection *c, enum settling wanted, const struct ordered_move *order);
/* OWNER, at a checkpoint of a service that asks its client to leave: when the client has seen that, and all that it
 * asked meanwhile is answered, the connection ends in order. */
void connection_leave(struct connection *c, enum end_reason reason);
void connection_hand_off_if_settled(struct connection *c);
/* @taken of the plaintext in @r went to the backend. The rest waits for the next owner. */
void connection_hold(struct connection *c, const struct live_record *r, size_t taken, size_t record_len);
bool connection_holds(const struct connection *c);
void connection_drop_settling(struct connection *c);

/* connection_recover.c */

/* An adopter's knowledge so far. */
struct connection_recovery {
	uint64_t exposed; /* client records below this number have to be read again */
	Cssl__Fate fate;
	enum { RECOVERING_HEARS, RECOVERING_ASKS /* for the rest of the answer */ } step;
	struct service_recall *recall; /* the cut answer; NULL: nothing is known of it */
	struct kept_bytes *heard;      /* their plaintext */
	uint32_t given_len;            /* bytes of it that a service has which stands between */
};

/* OWNER after a takeover: do what the state of the response requires. May end the connection. */
void connection_recover(struct connection *c, const Cssl__LinkSslId *id);
/* OWNER without a backend, for a service that stands between. */
void connection_recover_between(struct connection *c, const Cssl__LinkSslId *id);
/* RECOVERING: plaintext of a record that the lost agent had got. 0 or negative. */
int connection_hear(struct connection *c, const uint8_t *data, size_t len);
bool connection_hears(const struct connection *c); /* RECOVERING: more of them are to be opened */
void connection_heard(struct connection *c);       /* RECOVERING: records were opened; judge them if they are all */
void connection_recovered(struct connection *c);   /* RECOVERING -> OWNER */
void connection_not_recovered(struct connection *c, enum end_reason reason); /* say the alert, and end */
void connection_drop_recovery(struct connection *c);

/* An answer begins or goes on with [data, data + len), and its first @together bytes are the next frame. If it can
 * continue elsewhere, the carrier gets the note for that (service.h). */
void connection_leave_note(struct connection *c, const uint8_t *data, size_t len, size_t together);
/* Leave the note of a service that stands between, if it differs from RAgent's. */
void connection_leave_word(struct connection *c);
/* RECOVERING: bytes of the backend's answer. Returns how many are not for the client. */
size_t connection_take_rest(struct connection *c, const uint8_t *data, size_t len);

/* connection_export.c */
/* A session was offered, but its client certificate has expired or is revoked: counted and logged. */
void connection_count_offered_certificate(const struct connection *c);
int connection_export(struct connection *c); /* after the handshake: KEPT and owner, or HANDED_OFF and frozen */
bool connection_can_move(const struct connection *c);
int connection_keep_facts(struct connection *c, struct sess_obj *from);
void connection_drop_facts(struct connection *c);
int connection_facts(const struct connection *c, struct sess_obj *out); /* what was kept; the caller destroys */
void connection_choose_service(struct connection *c, const struct session_facts *facts);
int connection_own(struct connection *c, const struct live_part *part, uint16_t suite, const struct live_position *at,
	uint16_t epoch, enum live_start start);
/* Send KEPT or HANDED_OFF, with the sealed copy if the connection can move. 0 or negative: nothing was sent. */
int connection_announce(struct connection *c, enum frame_type type, struct sess_obj *obj, struct live_part *part,
	Cssl__Handshake *handshake, Cssl__BackendHalf backend);
void connection_tell_peers(struct connection *c, const struct sess_obj *obj); /* of the live part in @obj */
int connection_send_copy(struct connection *c, enum live_moment moment);
/* Where this agent's sealing is now, or stopped. */
struct seen_mark connection_sealed_mark(const struct connection *c);
/* Who seals it, for a claim (connections_seen.h). */
uint16_t connection_seal_owner(const struct connection *c);

#endif
