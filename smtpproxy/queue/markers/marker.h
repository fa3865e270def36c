/* marker.h: the record in which a backup says how complete it is, and what two markers say of each other. A part of its
 * own, because it decides whether an acknowledged mail counts. No sockets, no clock.
 *
 * The marker of a backup names a version and the members: the backups that hold everything that was accepted under that
 * version, each by its run_id. Each change of the set of members is a new, higher version, and the gateway writes it to
 * the members before it accepts a message under it. So the backups of the highest version are complete, each of them.
 *
 * A gateway that starts without a member which does not come back may go on without it. Until that member has come back
 * and was united, each marker names it as apart, with the version from which it may have gone on alone. So a gateway
 * that starts later still knows that its content counts, although its version is lower.
 *
 * The member may not know that the other one went on. So versions of two servers say nothing about each other if
 * neither marker names the other server: each of them took mail that the other one lacks, and both are read. A server
 * that was only left behind names the one that left it, because both were members last. If that one restarted
 * meanwhile and was filled again, its run_id is another one. So each marker also names the server that it leaves
 * behind, with the version up to which that server is known to have been marked: whoever went on with it alone has
 * marked it with a higher one. It may also have a marker whose answer was lost. Another gateway may mark it with the
 * same version, so each marker says whose it is, and this one names the gateway and the last version that it sent.
 *
 * An operator may order to go on without a complete server. What an absent one holds is not known then, and neither is
 * its run_id. Until it is in sync, each marker says that it was not read: what is delivered meanwhile must not come
 * back with it. No start waits for it.
 *
 * A gateway that was cut off from all servers finds them marked by another one, perhaps as other processes. Each marker
 * names the last gateways whose content was read, so that the one that comes back knows whether its own was.
 *
 * Another server may take the place of one that is lost (spares.c), and that one may come back as it was, with a
 * marker that is valid. As long as a server that it names as a member is the same process, that one's later marker
 * leaves it behind. For the time after that, markers name each server that was replaced, with its last version.
 *
 * A server that restarted has another run_id than its marker says; it is not believed, whatever it loaded from its
 * disk, unless an operator orders to go on without a complete server. Then it is read, too: nothing tells it from one
 * that was filled and not marked yet. If it loaded an old snapshot, what was delivered since goes out again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "smtpproxy/queue/items/item.h"
#include "smtpproxy/queue/items/seal.h"

#define RUN_ID_LEN 40u
#define NONCE_LEN  32u

/* The gateways before the one that wrote a marker whose content it has: for each process the nonce and, as 16
 * hexadecimal digits, the highest version of it that was read. The latest one comes first. */
#define OWNERS_KEPT 8u
#define OWNER_LEN   (NONCE_LEN + 16u)
#define OWNERS_LEN  (OWNERS_KEPT * OWNER_LEN)

/* A server that a marker leaves behind, or that the next one may leave behind. */
struct marker_left {
	char run_id[RUN_ID_LEN + 1]; /* "": none */
	uint64_t version;            /* the last one that it is known to have; 0: none */
	uint64_t sent;               /* it may have markers of @by up to this one, too; 0: none */
	char by[NONCE_LEN + 1];
};

/* The servers that were replaced: for each process its run_id, as 16 hexadecimal digits each the version and @sent of
 * struct marker_left, and its @by ("-" in each place: none). The latest one comes first. Of too many the oldest one
 * goes: it would be read again. */
#define REPLACED_KEPT 8u
#define REPLACED_LEN  (RUN_ID_LEN + 16u + 16u + NONCE_LEN)
#define REPLACED_MAX  (REPLACED_KEPT * REPLACED_LEN)

struct marker {
	uint64_t epoch;    /* of the last owner; 0: there was none */
	uint64_t version;  /* 0: not complete */
	uint64_t renewals; /* counted by the owner */
	uint64_t generation;
	char nonce[NONCE_LEN + 1];             /* of the last owner's process */
	char run_id[RUN_ID_LEN + 1];           /* of the server when it was marked; "": never */
	char members[BACKUPS][RUN_ID_LEN + 1]; /* "": not a member */
	char apart[BACKUPS][RUN_ID_LEN + 1];   /* "": not apart */
	uint64_t apart_version;                /* version of these */
	uint64_t unread;                       /* a bit for each server that was not read, of which nothing is known */
	struct marker_left left[BACKUPS];
	char by[NONCE_LEN + 1]; /* the gateway's process that marked it */
	char owners[OWNERS_LEN + 1];
	char replaced[REPLACED_MAX + 1]; /* "": none */
	char key[SEAL_PRINT_LEN + 1];    /* the fingerprint of the key that sealed; "": never marked */
};

enum sight_state {
	SIGHT_AWAY,   /* no answer yet */
	SIGHT_EMPTY,  /* answered, and has no marker that can be trusted */
	SIGHT_MARKED, /* answered, and its marker is valid */
};

struct sight {
	enum sight_state state;
	struct marker marker;
};

/* True: @other is marked, and its content belongs to the queue of @m, although it went on alone. @at: its
 * index. */
bool marker_is_apart(const struct marker *m, const struct sight *other, unsigned at);

/* True: the server of @m was only left behind by one of those that were read. None of these has a lower version. @read:
 * their markers; all zero: not read. */
bool marker_is_behind(const struct marker *m, const struct marker read[static BACKUPS]);

/* What @m says of the process @run_id of the server number @at, if it leaves that one behind. Of an earlier process
 * nothing is kept. @version of it is the last one whose content the queue has. */
struct marker_left *marker_left_of(struct marker *m, unsigned at, const char run_id[static RUN_ID_LEN + 1]);

/* A server is apart: it may hold messages that were not read. */
static inline bool marker_any_apart(const struct marker *m)
{
	return m->apart[0][0] || m->apart[1][0];
}

/* The highest version of the gateway @nonce that was read; 0: it is not among them. */
uint64_t marker_owner_version(const char *owners, const char *nonce);
/* @m was read: its gateway and those that it names are among @owners now. */
void marker_note_owners(char owners[static OWNERS_LEN + 1], const struct marker *m);

/* @l is among the replaced ones now. If it has no run_id, nothing is done. */
void marker_note_replaced(char replaced[static REPLACED_MAX + 1], const struct marker_left *l);
/* And so are the @others. */
void marker_merge_replaced(char replaced[static REPLACED_MAX + 1], const char *others);
/* True: the server of @m was replaced, and has not gone on since. */
bool marker_is_replaced(const char *replaced, const struct marker *m);

/* The meaning of an answer. @run_id: the server's present one. */
enum sight_state marker_judge(const struct marker *m, const char *run_id);
