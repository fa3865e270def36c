/* link_parked.c: streams that outlive their link. When RAgent's process dies, or the network breaks the link, the
 * client's connection is still open, and RAgent goes on with it on another link. So the streams wait, paused: their
 * connections open no record, read no backend and seal no answer. A stream goes on only for a link that shows the same
 * proof, and under the same epoch. It ends if its time is over, or if RAgent asks this agent to adopt its connection
 * (leave_parked() in adopt.c): then RAgent has given this ownership up.
 *
 * If the link ended, they wait for a shorter time than it takes an honest RAgent to think an agent lost, so no other
 * agent owns their connections meanwhile. If it timed out, RAgent hangs, or the network is cut. In the first case its
 * keeper kills it later, and its next process needs them; so they wait for that, too. In the second, other agents may
 * own their connections by then: nothing of the streams goes out any more, because RAgent asks only for the last epoch.
 *
 * RAgent's next process asks for all streams of a link at once, and each may hold some windows of frames. All of them
 * in the output of one link would need the memory of all that is held once more, beside it, and a link that ends for
 * lack of memory would be asked for the same again. So they go out stream by stream. For each byte that is written,
 * whichever, one more of them may follow: so the output does not grow by them, and streams that go on already, and keep
 * it full, delay the others little. A stream that awaits its turn is silent: what its connection says is held. If it
 * holds too much by then, or there is no memory for it, it does not go on.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/memory/array.h"
#include "net/memory/container_of.h"
#include "net/points/mutant.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"
#include "sslagent/preamble/preamble_stream.h"

/* Of health.lost. */
#define WAIT_NUMERATOR   5u
#define WAIT_DENOMINATOR 6u

#define AHEAD_LIMIT (1024u * 1024u) /* of frames that were held, in the output of a link */

/* TIMEDOUT: RAgent reads nothing for long, perhaps because it hangs and its keeper has not killed it yet. Without
 * memory, or with too much output for a RAgent that does not read, the held frames are whole all the same. */
bool carrier_link_may_park(const struct carrier_link *l)
{
	const bool ended = l->failure == UV_EOF || l->failure == UV_ECONNRESET || l->failure == UV_EPIPE ||
			   l->failure == UV_ETIMEDOUT;
	const bool is_full = l->failure == UV_ENOMEM || l->failure == CSSL_E_NO_MEMORY;

	return (ended || is_full) && l->proven == LINK_PROVEN && l->stage == LINK_OPEN;
}

/* --- park --- */

/* A stream may wait in every state of its connection: also during a handshake, when the connection waits for its
 * client; when it is frozen, and waits until RAgent has read HANDED_OFF; and when its client speaks in clear, and waits
 * for a reply. */
static void park_stream(void *ctx, uint32_t id, void *holder)
{
	struct carrier_link *l = ctx;
	struct link_stream *s = holder;

	s->turn = LINK_TURN_HAS;
	/* law 7: without a proof and all its frames, it can only stop sealing, now */
	if (s->proven != LINK_PROVEN || s->held.state != HELD_WHOLE || streams_add(&l->streams, id, s) < 0) {
		carrier_link_forget_stream(s, END_AGENT_LOST);
		return;
	}
	s->carrier.pace = CARRIER_PAUSED;
	if (s->clear)
		preamble_stream_pause(s->clear);
}

static void on_parked_due(struct deadline *d)
{
	carrier_link_end_parked(container_of(d, struct carrier_link, parked_due));
}

/* RAgent's own value counts: by it RAgent decides when this agent is lost. */
static uint64_t lost_ms(const struct carrier_link *l)
{
	const struct conf *conf = l->home->connections->conf;
	const struct conf_ragent *r = conf_ragent_find(conf, l->peer);

	return r ? r->health.lost_ms : conf->health.lost_ms;
}

uint64_t carrier_link_patience_ms(const struct carrier_link *l)
{
	return lost_ms(l) * WAIT_NUMERATOR / WAIT_DENOMINATOR;
}

/* The link stood still for that time (carrier_link_begin()). Its keeper kills RAgent when it hangs for longer. */
static uint64_t until_killed_ms(const struct carrier_link *l)
{
	const struct conf_ragent *r = conf_ragent_find(l->home->connections->conf, l->peer);
	const uint64_t hang_ms = r ? conf_ragent_hang_ms(r) : 0, still_ms = carrier_link_patience_ms(l);

	return l->failure == UV_ETIMEDOUT && hang_ms > still_ms ? hang_ms - still_ms : 0;
}

static void begin_wait(struct carrier_link *l, uint64_t first_ms)
{
	deadline_set(l->home->connections->worker, &l->parked_due, first_ms + carrier_link_patience_ms(l));
}

void carrier_link_park(struct carrier_link *l)
{
	carrier_link_stop(l);
	carrier_home_remove_link(l->home, l);
	l->stage = LINK_PARKED;
	l->next = l->home->parked;
	l->home->parked = l;
	l->parked_due.fn = on_parked_due;
	begin_wait(l, until_killed_ms(l));
	carrier_link_give_up_streams(l, park_stream);
	count_by(COUNT_STREAMS_PARKED, l->streams.count);
}

static void end_stream(void *ctx, uint32_t id, void *holder)
{
	count(COUNT_STREAMS_NOT_REATTACHED);
	carrier_link_forget_stream(holder, END_AGENT_LOST);
}

void carrier_link_end_parked(struct carrier_link *l)
{
	/* law 7: from now on another agent may be owner, so these wipe their keys */
	deadline_cancel(&l->parked_due);
	carrier_home_remove_link(l->home, l);
	carrier_link_give_up_streams(l, end_stream);
	l->stage = LINK_OVER;
	carrier_link_free_if_over(l);
}

void carrier_link_end_parked_if_empty(struct carrier_link *l)
{
	if (l->stage == LINK_PARKED && l->streams.count == 0)
		carrier_link_end_parked(l);
}

/* --- one after another --- */

static int refuse_reattach(struct carrier_link *l, uint32_t id, const struct connection_id *connection, const char *why)
{
	count(COUNT_REATTACHES_REFUSED);
	log_paced(LOG_INFO, connection, "stream does not go on", "ragent=%s cause=\"%s\"", l->peer, why);
	return link_stream_refuse(l, id, CSSL__LINK_REFUSED__REASON__NO_STREAM, why);
}

/* The held frames, as they were. 0 or CSSL_E_NO_MEMORY. */
static int send_held(struct link_stream *s)
{
	struct frame_reattached answer = { .client_records = s->client_records };
	uint8_t payload[FRAME_REATTACHED_LEN];
	struct held_walk w = { 0 };
	struct held_frame *f;

	answer.frame = held_first(&s->held, &answer.bytes);
	frame_reattached_write(payload, &answer);
	int r = framed_send(&s->link->framed, s->id, FRAME_REATTACHED, 0, payload, sizeof payload);
	s->link->turns.ahead += FRAME_HEADER_LEN + sizeof payload;
	while (r == 0 && (f = held_next(&s->held, &w)) != NULL) {
		link_stream_pass(s, f);
		s->link->turns.ahead += FRAME_HEADER_LEN + f->len;
	}
	return r;
}

static void take_turn(struct link_stream *s)
{
	s->turn = LINK_TURN_HAS;
	if (s->held.state != HELD_WHOLE) {
		refuse_reattach(s->link, s->id, &s->connection_id, "more was sent than is held");
		streams_remove(&s->link->streams, s->id);
		carrier_link_forget_stream(s, END_AGENT_LOST);
		return;
	}
	count(COUNT_STREAMS_REATTACHED);
	log_event(LOG_DEBUG, &s->connection_id, "stream goes on", "ragent=%s frames=%llu", s->link->peer,
		(unsigned long long)s->held.frames);
	int r = send_held(s);
	if (r < 0)
		carrier_link_fail(s->link, r);
}

static bool link_turns_have_room(const struct carrier_link *l)
{
	return l->stage == LINK_OPEN && !l->failure && l->framed.stream.state < STREAM_FAILED &&
	       l->turns.ahead < AHEAD_LIMIT;
}

void link_turns_clear(struct carrier_link *l)
{
	free(l->turns.ids);
	l->turns = (struct link_turns){ .ahead = l->turns.ahead };
}

static void link_turns_go_on(struct carrier_link *l)
{
	struct link_turns *t = &l->turns;

	while (t->first < t->end && link_turns_have_room(l)) {
		struct link_stream *s = streams_find(&l->streams, t->ids[t->first++]);
		if (s && s->turn == LINK_TURN_AWAITS)
			take_turn(s);
	}
	if (t->cap && t->first == t->end)
		link_turns_clear(l);
}

void link_turns_written(struct carrier_link *l, size_t len)
{
	struct link_turns *t = &l->turns;

	t->ahead -= len < t->ahead ? len : t->ahead;
	if (t->cap)
		link_turns_go_on(l);
}

/* @s goes on, on this link: RAgent gets its held frames when its turn comes. 0 or CSSL_E_NO_MEMORY. */
static int await_turn(struct link_stream *s)
{
	struct carrier_link *l = s->link;
	struct link_turns *t = &l->turns;

	s->turn = LINK_TURN_AWAITS; /* also if that fails: RAgent did not get REATTACHED */
	int r = array_make_room(&t->ids, &t->cap, t->end, sizeof *t->ids);
	if (r < 0)
		return r;
	t->ids[t->end++] = s->id;
	link_turns_go_on(l);
	return 0;
}

/* --- go on --- */

static bool is_same_line(const struct carrier_link *l, const struct carrier_link *before)
{
	/* law 7: what was sealed goes only to a link with the same proof */
	return before != l && before->peer_worker == l->peer_worker && before->proven == LINK_PROVEN &&
	       strcmp(before->peer, l->peer) == 0 &&
	       (sodium_memcmp(before->proof, l->proof, sizeof l->proof) == 0 || mutant("proof-unchecked"));
}

/* A pair of workers has one link. If the end of an earlier one was not seen yet, it is over now: what RAgent wrote
 * there and was not read is void, and streams that RAgent does not ask for must not work on. */
static void parked_supersede(struct carrier_link *l)
{
	struct carrier_link *next;

	for (struct carrier_link *other = l->home->links; other; other = next) {
		next = other->next;
		if (!is_same_line(l, other) || other->stage != LINK_OPEN ||
			(other->failure && !carrier_link_may_park(other)))
			continue;
		if (other->number < l->number) {
			log_paced(LOG_INFO, NULL, "link lost", "ragent=%s streams=%u cause=\"RAgent has a new link\"",
				other->peer, other->streams.count);
			count(COUNT_LINKS_LOST);
			carrier_link_park(other);
		} else if (!other->failure)
			carrier_link_fail(l, UV_ECONNRESET); /* this frame was late */
	}
}

int carrier_link_take_proof(struct carrier_link *l, const struct frame *f)
{
	const enum link_proof before = l->proven;

	memcpy(l->proof, f->payload, sizeof l->proof);
	l->proven = LINK_PROVEN;
	parked_supersede(l);
	/* Said again, it means that RAgent's next process has not asked for all streams yet. */
	for (struct carrier_link *p = before == LINK_PROVEN ? l->home->parked : NULL; p; p = p->next)
		if (is_same_line(l, p))
			begin_wait(p, 0);
	return 0;
}

struct search {
	const struct frame_reattach *wanted;
	struct link_stream *found;
};

static bool parked_is_wanted(const struct link_stream *s, const struct frame_reattach *r)
{
	/* law 2: in another epoch it has another owner */
	return (s->epoch == r->epoch || mutant("stream-epoch-unchecked")) &&
	       memcmp(s->connection_id.bytes, r->connection_id, CONNECTION_ID_LEN) == 0;
}

static void parked_compare(void *ctx, uint32_t id, void *holder)
{
	struct search *s = ctx;

	if (parked_is_wanted(holder, s->wanted))
		s->found = holder;
}

/* RAgent's process may have died before it learnt that the stream went on: then the stream is on a later link than
 * RAgent names. */
static struct link_stream *look_up_connection(const struct carrier_link *l, const struct frame_reattach *r)
{
	struct connection_id id;

	memcpy(id.bytes, r->connection_id, sizeof id.bytes);
	const struct connection *c = connection_table_find(&l->home->connections->table, &id);
	struct link_stream *s = c ? link_stream_of(c->carrier) : NULL;
	return s && s->link->stage == LINK_PARKED && is_same_line(l, s->link) && parked_is_wanted(s, r) ? s : NULL;
}

/* ALL: of a connection that ended meanwhile, the stream may have any number, too. There are few. */
enum look { LOOK_BY_NUMBER, LOOK_AT_ALL };

static struct link_stream *parked_look_up(const struct carrier_link *l, const struct frame_reattach *r, enum look look)
{
	struct search s = { .wanted = r };

	for (struct carrier_link *before = l->home->parked; before && !s.found; before = before->next) {
		if (!is_same_line(l, before))
			continue;
		if (look == LOOK_AT_ALL)
			streams_each(&before->streams, parked_compare, &s);
		else if ((s.found = streams_find(&before->streams, r->stream)) && !parked_is_wanted(s.found, r))
			s.found = NULL;
	}
	return s.found;
}

/* NULL with *why: none goes on. */
static struct link_stream *find_stream(const struct carrier_link *l, const struct frame_reattach *r, const char **why)
{
	struct link_stream *s = parked_look_up(l, r, LOOK_BY_NUMBER);

	if (!s)
		s = look_up_connection(l, r);
	if (!s)
		s = parked_look_up(l, r, LOOK_AT_ALL);
	*why = s && s->held.state != HELD_WHOLE ? "more was sent than is held" : "no such stream";
	return s && s->held.state == HELD_WHOLE ? s : NULL;
}

static int move_stream(struct link_stream *s, struct carrier_link *l, uint32_t id)
{
	struct carrier_link *before = s->link;

	if (streams_add(&l->streams, id, s) < 0)
		return CSSL_E_NO_MEMORY;
	streams_remove(&before->streams, s->id);
	s->link = l;
	s->id = id;
	int r = await_turn(s);
	carrier_link_end_parked_if_empty(before);
	return r;
}

int carrier_link_reattach(struct carrier_link *l, const struct frame *f)
{
	struct frame_reattach wanted;
	struct connection_id connection;
	int r = frame_reattach_read(f, &wanted);

	if (r < 0 || l->proven != LINK_PROVEN || streams_find(&l->streams, f->stream))
		return r < 0 ? r : CSSL_E_STATE;
	const char *why;
	struct link_stream *s = find_stream(l, &wanted, &why);
	if (s)
		return move_stream(s, l, f->stream);
	memcpy(connection.bytes, wanted.connection_id, CONNECTION_ID_LEN);
	return refuse_reattach(l, f->stream, &connection, why);
}
