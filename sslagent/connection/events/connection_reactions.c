/* connection_reactions.c: the reaction of a connection to each event in each state. The table names the function of the
 * part that reacts, or why nothing is done.
 */
#include <assert.h>

#include "sslagent/connection/beginning/handshaking.h"
#include "sslagent/connection/beginning/recover.h"
#include "sslagent/connection/flow/flow.h"
#include "sslagent/connection/leaving/hand_off.h"
#include "sslagent/connection/leaving/move.h"
#include "sslagent/connection/leaving/settle.h"
#include "sslagent/connection/succession.h"

static void ignore(struct connection *c, struct connection_event *e)
{
}

static void never(struct connection *c, struct connection_event *e)
{
	assert(!"an event that cannot happen in this state");
}

static void take_accepted(struct connection *c, struct connection_event *e)
{
	succession_accepted(c, e);
	flow_go_on(c);
}

static void refuse_move(struct connection *c, struct connection_event *e)
{
	hand_off_refuse(c, NOT_AN_OWNER);
}

/* It stays with the backend's socket. */
static void hold_answer(struct connection *c, struct connection_event *e)
{
	backend_read_pause(c->backend);
}

static void drop_backend(struct connection *c, struct connection_event *e)
{
	conversation_release(c, END_DONE);
}

/* Cells. Where there is nothing to explain, only the function. */
#define IGNORES(why)    ignore, why, EVENT_IGNORED
#define CLOSES(fn, why) fn, why, EVENT_CLOSES
#define NEVER(why)      never, why, EVENT_NEVER
#define WAITS           ignore /* the tail (connection.h): until the records before it are opened */

/* The same in many rows. */
#define OVER         IGNORES("the connection has ended, and lasts only to the end of this loop turn")
#define NOT_YET      NEVER("SSL_ID is worked on in one go; nobody knows of the connection before")
#define NO_BACKEND   NEVER("a backend connection is begun by an owner")
#define NO_HANDSHAKE NEVER("its handshake is over, and has left the line and the pulls")

/* Cells of every event from outside. */
#define ALWAYS [CONNECTION_ADOPTING] = { NOT_YET }, [CONNECTION_ENDED] = { OVER }

/* Neighbours in many rows. Ranges are an extension of GNU C. */
#define IN_HANDSHAKE CONNECTION_HANDSHAKING... CONNECTION_PARKED
#define SERVING      CONNECTION_OWNER... CONNECTION_SETTLING

__extension__ const struct connection_table_cell connection_reactions[EVENT_COUNT][CONNECTION_STATE_COUNT] = {
	/* Whole records of the client. */
	[EVENT_RECORDS] = {
		ALWAYS,
		[CONNECTION_HANDSHAKING] = { handshaking_takes },
		[CONNECTION_PARKED] = { from_client_keep },
		[CONNECTION_FROZEN] = { IGNORES("RAgent replays them to the successor") },
		[CONNECTION_RECOVERING] = { recover_takes },
		[CONNECTION_PASSING] = { from_client_keep },
		[SERVING] = { from_client_open },
		[CONNECTION_ENDING] = { IGNORES("nothing of the client matters any more") },
	},
	/* The client took bytes; records were committed. */
	[EVENT_ACCEPTED] = {
		ALWAYS,
		[CONNECTION_HANDSHAKING ... CONNECTION_PASSING] = { succession_accepted },
		[SERVING] = { take_accepted },
		[CONNECTION_ENDING] = { words_go_on },
	},
	/* The client's FIN, after its last record. */
	[EVENT_FIN] = {
		ALWAYS,
		[IN_HANDSHAKE] = { CLOSES(handshaking_takes, "a handshake cannot end any more") },
		[CONNECTION_FROZEN] = { IGNORES("RAgent tells the successor") },
		[CONNECTION_RECOVERING ... CONNECTION_PASSING] = { WAITS },
		[SERVING] = { from_client_take_tail },
		[CONNECTION_ENDING] = { IGNORES("nothing of the client matters any more") },
	},
	/* Bytes that are no record, after the client's last one. */
	[EVENT_VIOLATION] = {
		ALWAYS,
		[CONNECTION_HANDSHAKING] = { CLOSES(handshaking_takes, "the client does not speak TLS") },
		[CONNECTION_PARKED] = { WAITS }, /* OpenSSL sends the alert when it continues */
		[CONNECTION_FROZEN] = { IGNORES("RAgent tells the successor") },
		[CONNECTION_RECOVERING ... CONNECTION_PASSING] = { WAITS },
		[SERVING] = { from_client_take_tail },
		[CONNECTION_ENDING] = { IGNORES("nothing of the client matters any more") },
	},
	/* RAgent orders a move or a rest. */
	[EVENT_MOVE] = {
		ALWAYS,
		[CONNECTION_HANDSHAKING ... CONNECTION_RECOVERING] = { refuse_move },
		[CONNECTION_PASSING] = { IGNORES("it was said again, and the answer will be the same") },
		[CONNECTION_OWNER] = { move_order },
		[CONNECTION_SETTLING] = { IGNORES("it was said again, and the answer will be the same") },
		[CONNECTION_ENDING] = { refuse_move },
	},
	/* It has to end: because of an operator, a time limit, or the budget for kept bytes. */
	[EVENT_GIVE_UP] = {
		ALWAYS,
		[IN_HANDSHAKE] = { CLOSES(handshaking_takes, "there is nothing to say in a handshake") },
		[CONNECTION_FROZEN] = { IGNORES("only an owner may end it") },
		[CONNECTION_RECOVERING] = { CLOSES(settle_give_up, "its carrier or this agent wants it") },
		[CONNECTION_PASSING] = { CLOSES(move_passing, "its carrier or this agent wants it") },
		[SERVING] = { CLOSES(settle_give_up, "its carrier or this agent wants it") },
		[CONNECTION_ENDING] = { words_go_on },
	},
	/* The client or the link is gone, or the successor has adopted. */
	[EVENT_FORGET] = {
		[CONNECTION_ADOPTING] = { CLOSES(connection_forgotten, "SSL_ID is refused") },
		[IN_HANDSHAKE] = { CLOSES(connection_forgotten, "its carrier is gone") },
		[CONNECTION_FROZEN] = { CLOSES(connection_forgotten, "its carrier is gone, or another agent owns it") },
		[CONNECTION_RECOVERING ... CONNECTION_ENDING] = { CLOSES(connection_forgotten, "its carrier is gone") },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The session that the handshake waits for has come, or no agent has it. */
	[EVENT_PULLED] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING] = { NEVER("it waits for no session") },
		[CONNECTION_PARKED] = { handshaking_takes },
		[CONNECTION_FROZEN ... CONNECTION_ENDED] = { NO_HANDSHAKE },
	},
	/* The loop turn has time for a handshake that waited in line. */
	[EVENT_TURN] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING] = { handshaking_takes },
		[CONNECTION_PARKED] = { NEVER("it parked in its turn, and waits in line only when the session is there") },
		[CONNECTION_FROZEN ... CONNECTION_ENDED] = { NO_HANDSHAKE },
	},
	/* Bytes of the backend. */
	[EVENT_BACKEND_DATA] = {
		[CONNECTION_ADOPTING] = { NEVER("what came along is read when the connection is owned") },
		[IN_HANDSHAKE] = { NO_BACKEND },
		[CONNECTION_FROZEN] = { hold_answer },
		[CONNECTION_RECOVERING] = { recover_takes },
		[CONNECTION_PASSING] = { hold_answer },
		[SERVING] = { flow_answer },
		[CONNECTION_ENDING] = { hold_answer },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The backend's socket took bytes. */
	[EVENT_BACKEND_WRITTEN] = {
		[CONNECTION_ADOPTING] = { NEVER("nothing is written before the connection is owned") },
		[IN_HANDSHAKE] = { NO_BACKEND },
		[CONNECTION_FROZEN ... CONNECTION_RECOVERING] = { conversation_count_written },
		[CONNECTION_PASSING] = { move_passing },
		[SERVING] = { flow_backend_took },
		[CONNECTION_ENDING] = { conversation_count_written },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The backend's FIN or reset, or it could not be reached. */
	[EVENT_BACKEND_ENDED] = {
		[CONNECTION_ADOPTING] = { NEVER("what came along is read when the connection is owned") },
		[IN_HANDSHAKE] = { NO_BACKEND },
		[CONNECTION_FROZEN] = { drop_backend }, /* the successor sees it, too */
		[CONNECTION_RECOVERING] = { CLOSES(recover_takes, "the rest of the answer cannot come any more") },
		[CONNECTION_PASSING] = { move_passing },
		[SERVING] = { flow_lose_backend },
		[CONNECTION_ENDING] = { drop_backend },
		[CONNECTION_ENDED] = { OVER },
	},
	/* The connection's only deadline. Its purpose depends on the state. */
	[EVENT_DEADLINE] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[IN_HANDSHAKE] = { NEVER("RAgent, or the direct listener, has the handshake's") },
		[CONNECTION_FROZEN] = { NEVER("to freeze is to cancel it") },
		[CONNECTION_RECOVERING] = { from_client_deadline },
		[CONNECTION_PASSING] = { move_passing },
		[SERVING] = { from_client_deadline },
		[CONNECTION_ENDING] = { words_go_on },
		[CONNECTION_ENDED] = { NEVER("to end is to cancel it") },
	},
	/* No checkpoint came within the time of a MOVE. */
	[EVENT_SETTLING_LATE] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING ... CONNECTION_OWNER] = { NEVER("it does not settle") },
		[CONNECTION_SETTLING] = { settle_is_late },
		[CONNECTION_ENDING ... CONNECTION_ENDED] = { NEVER("it does not settle") },
	},
	/* The target agent has the backend's socket, or did not get it. */
	[EVENT_PASSED] = {
		[CONNECTION_ADOPTING] = { NOT_YET },
		[CONNECTION_HANDSHAKING ... CONNECTION_RECOVERING] = { NEVER("it passes nothing") },
		[CONNECTION_PASSING] = { move_passing },
		[CONNECTION_OWNER ... CONNECTION_ENDED] = { NEVER("it passes nothing") },
	},
};
