/* connection_reattach.c: a connection whose link to its owner broke, or that had an owner when the process before died.
 * The owner keeps its stream for a while (proto/frame.h: REATTACH), and the connection waits in state REATTACHING until
 * the link to it is up again. The agent of a handshake, one that was told to adopt the connection, and one that speaks
 * with the client in clear count as owners here.
 *
 * Then both sides make up for what the other one lacks. The owner sends the frames that no image has, and those whose
 * bytes the client has not got: of a frame that the image has, only the bytes are used that the kernel had not taken; a
 * later one counts as any frame, but the client gets no byte of it twice. This side sends the client's records that the
 * owner did not get. Nobody owned the connection meanwhile but the owner: no next epoch, no doubt.
 */
#include <string.h>

#include "net/log.h"
#include "net/mutant.h"
#include "ragent/connection/connection_internal.h"

/* In again.next: the frames that the image has are over. */
#define ALL_NEW UINT64_MAX

/* --- wait --- */

static bool has_state_to_wait(const struct connection *c)
{
	switch ((enum connection_state)c->now.state) {
	case CONNECTION_HANDSHAKING: return c->now.position.stage == POSITION_HANDSHAKE;
	case CONNECTION_PREAMBLE:
	case CONNECTION_RELAYED:
	case CONNECTION_OWNED:
	case CONNECTION_MOVING:
	case CONNECTION_ADOPTING:
	case CONNECTION_FINISHING:
	case CONNECTION_REATTACHING: return true;
	default: return false;
	}
}

bool connection_waits_for_owner(struct connection *c, const struct link *l)
{
	if (!has_state_to_wait(c) || !link_comes_again(l))
		return false;
	if (connection_expand_or_end(c) < 0) /* it may have no socket any more */
		return true;
	if (c->now.state == CONNECTION_MOVING)
		connection_owner_keeps(c, "the link to its owner broke, so the connection stays there");
	if (c->now.state != CONNECTION_REATTACHING) {
		c->busy->resumes = c->now.state;
		connection_to(c, CONNECTION_REATTACHING);
	}
	connection_save(c);
	return true;
}

/* --- ask --- */

static bool waits_for(const struct connection *c, const struct link *l)
{
	return c->now.state == CONNECTION_REATTACHING && !c->now.current.link &&
	       c->now.account.stream.agent == link_agent(l) &&
	       c->now.account.stream.agent_worker == link_agent_worker(l);
}

static void ask(struct connection *c, struct link *l)
{
	const struct stream_name *s = &c->now.account.stream;
	struct frame_reattach r = { .stream = s->id, .epoch = c->now.epoch };
	uint8_t payload[FRAME_REATTACH_LEN];
	uint32_t stream = 0;

	if (link_outlived(l))
		stream = link_stream_begin(l, c);
	if (stream == 0) {
		connection_reattach_failed(c);
		return;
	}
	c->busy->again = (struct again){ 0 }; /* of a link that broke, too, before all had come again */
	c->now.current = (struct place){ l, stream };
	agents_enter(connection_agents(c), link_agent(l), AGENT_OWNERSHIPS);
	memcpy(r.connection_id, c->id.bytes, sizeof r.connection_id);
	frame_reattach_write(payload, &r);
	link_send(l, stream, FRAME_REATTACH, 0, payload, sizeof payload);
}

void connection_reattach_all(struct connection_home *home, struct link *l, enum reattach_how how)
{
	struct connection *next;

	for (struct connection *c = home->reattaching ? home->connections : NULL; c; c = next) {
		next = c->next;
		if (!waits_for(c, l))
			continue;
		connection_work_begins(c); /* this may be the first that happens to it after a death */
		if (how == REATTACH_BY_ASKING)
			ask(c, l);
		else
			connection_reattach_failed(c);
		connection_work_ends(home);
	}
}

void connection_reattach_if_up(struct connection *c)
{
	const struct stream_name *s = &c->now.account.stream;
	const struct links *links = &c->home->links;

	if (c->now.state != CONNECTION_REATTACHING || s->agent < 0 || s->agent_worker >= links->of[s->agent].count)
		return;
	struct link *l = links->of[s->agent].at[s->agent_worker];
	if (link_open(l) && waits_for(c, l))
		ask(c, l);
}

static void wait_anew(struct connection *c)
{
	if (c->now.state == CONNECTION_REATTACHING)
		connection_arm_deadline(c);
}

void connection_reattach_anew(struct connection_home *home)
{
	if (home->reattaching)
		connection_home_each(home, wait_anew);
}

/* --- in vain --- */

/* The owner may still have it: tell it on the stream that it was asked to use. */
static void give_up_owner(struct connection *c)
{
	const uint8_t reason = END_AGENT_LOST;

	if (!c->now.current.link)
		return;
	link_send(c->now.current.link, c->now.current.stream, FRAME_CLOSE, 0, &reason, 1);
	connection_release_current(c);
}

/* Only if the client can get all that was committed: only the lost owner had the bytes that RAgent lacks. */
static bool another_can_go_on(const struct connection *c)
{
	return !connection_lacks_bytes(c) && (c->now.copies.current || connection_shakes_hands(c));
}

/* As after the loss of an owner. */
void connection_reattach_failed(struct connection *c)
{
	counter_add(&c->home->counters.reattach_failed, 1);
	give_up_owner(c);
	if (connection_is_in_clear(c)) {
		connection_preamble_not_reattached(c);
	} else if (!another_can_go_on(c)) {
		counter_add(&c->home->counters.takeovers_ended, 1);
		connection_end(c, END_AGENT_LOST, END_RESET);
	} else if (c->busy->resumes == CONNECTION_FINISHING) {
		connection_send_finish(c, (enum end_reason)c->now.end_reason);
	} else {
		connection_owner_lost(c, c->now.account.stream.agent, PEER_FATE_UNKNOWN);
	}
	connection_save_if_changed(c);
}

void connection_reattach_overdue(struct connection *c)
{
	if (c->home->restoring)
		connection_arm_deadline(c);
	else
		connection_reattach_failed(c);
}

/* SSL_ID may have been lost with the link or the process. Then its agent is no owner, and can be asked again. If it was
 * one, it knows that epoch and refuses (law 2). */
void connection_reattach_refused(struct connection *c)
{
	struct link *l = c->now.current.link;

	connection_release_current(c);
	if (c->busy->resumes == CONNECTION_ADOPTING)
		connection_adopt_again(c, l);
	else
		connection_reattach_failed(c);
}

/* --- go on --- */

/* Is the next frame one that the image does not have? */
static void pass_image(struct connection *c)
{
	struct again *a = &c->busy->again;

	if (a->next > c->now.account.frames)
		a->next = a->byte < a->written ? ALL_NEW : 0;
}

/* The process before may have died before it told the agent to end it. */
static void go_on(struct connection *c)
{
	const uint8_t reason = c->now.end_reason;

	connection_to(c, (enum connection_state)c->busy->resumes);
	connection_shut_if_due(c);
	if (c->now.state == CONNECTION_FINISHING)
		link_send(c->now.current.link, c->now.current.stream, FRAME_FINISH, 0, &reason, 1);
	if (connection_is_in_clear(c))
		connection_preamble_goes_on(c);
	connection_acknowledge(c);
	connection_send_records(c);
	connection_order_again(c);
	connection_drain_if_idle(c);
}

int connection_in_reattached(struct connection *c, const struct frame *f, const void *message)
{
	struct frame_reattached told;
	struct again *a = &c->busy->again;
	int r = frame_reattached_read(f, &told);

	if (r < 0)
		return r;
	const uint64_t written = c->now.queued - c->now.account.base; /* or it will be, without the owner */
	if (c->now.queued < c->now.account.base || told.frame == 0 || told.frame > c->now.account.frames + 1 ||
		told.bytes > written || kept_mark_sent_to(&c->busy->kept, told.client_records) < 0) {
		connection_reattach_failed(c);
		return 0;
	}
	*a = (struct again){ .next = told.frame, .byte = told.bytes, .written = written };
	c->now.account.stream = connection_stream_name(c);
	c->now.tail_told = TAIL_UNTOLD;
	pass_image(c);
	counter_add(&c->home->counters.reattached, 1);
	log_event(LOG_DEBUG, &c->id, "owner goes on", "agent=%s frames=%llu held_from=%llu",
		agents_name(connection_agents(c), c->now.account.stream.agent),
		(unsigned long long)c->now.account.frames, (unsigned long long)told.frame);
	go_on(c);
	return 0;
}

/* Of @len bytes that come again, those that the client has already. */
static size_t pass_bytes(struct again *a, size_t len)
{
	const uint64_t left = a->byte < a->written ? a->written - a->byte : 0;

	a->byte += len;
	return left < len ? (size_t)left : len;
}

/* Only its bytes count, and of these only those that were lost with the process. */
static void write_again(struct connection *c, const struct frame *f)
{
	const size_t had = pass_bytes(&c->busy->again, f->len), lost = f->len - had;

	if (lost && connection_write(c, f->payload + had, lost) == 0)
		connection_shut_if_due(c);
}

bool connection_had_frame(struct connection *c, const struct frame *f)
{
	struct again *a = &c->busy->again;

	if (a->next == 0 || a->next == ALL_NEW || mutant("frame-taken-twice"))
		return false;
	a->next++;
	if (f->type == FRAME_DATA)
		write_again(c, f);
	pass_image(c);
	return true;
}

size_t connection_had_bytes(struct connection *c, size_t len)
{
	struct again *a = &c->busy->again;

	if (a->next != ALL_NEW)
		return 0;
	const size_t had = pass_bytes(a, len);
	if (a->byte >= a->written)
		a->next = 0;
	return had;
}
