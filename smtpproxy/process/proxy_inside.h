/* proxy_inside.h: the root object, for its own files: proxy.c (start and stop), proxy_reload.c (the file is read
 * again).
 */
#pragma once

#include "smtpproxy/control/answers.h"
#include "smtpproxy/process/handover.h"
#include "smtpproxy/process/proxy.h"

struct control_socket;
struct doors;
struct queue_side;
struct signals;
struct status_socket;

/* RUNS -> DRAINS -> CLOSES -> OVER; RUNS -> LINGERS -> DRAINS: another process has its listening sockets */
/* DRAINS: to the ends of transactions. CUTS: to the replies to complete messages. */
enum proxy_state { PROXY_RUNS, PROXY_LINGERS, PROXY_DRAINS, PROXY_CUTS, PROXY_CLOSES, PROXY_OVER };

/* A file that was read again. It is kept to the end of the process, because sessions and destinations point into it, or
 * into the one before. */
struct proxy_file {
	SLIST_ENTRY(proxy_file) next;
	struct conf_smtpproxy *conf;
};

struct proxy {
	const struct conf_smtpproxy *conf; /* that counts now */
	SLIST_HEAD(, proxy_file) files;    /* read since the start */
	struct worker *worker;
	struct signals *signals;
	struct smtpproxy_counters counters;
	struct replies replies;
	struct outward_home outward_home;
	struct sender_home home;
	struct control_view view;
	struct control_socket *control; /* NULL: none */
	struct status_socket *status;   /* NULL: none */
	struct handover *handover;      /* NULL: none */
	struct inheritance *inherits;   /* while it starts; NULL: it replaces none */
	struct predecessor predecessor; /* open: this process has replaced one that still has sessions */
	struct doors *doors;
	struct queue_side *queue_side; /* NULL: deliver is relay */
	enum proxy_start how;
	enum proxy_state state;
	int result;           /* of proxy_run() */
	struct deadline stop; /* LINGERS, DRAINS, CUTS: for the sessions that are left */
};

/* SIGHUP: opens the logs again, and reads the file again. If a part of the file cannot be used, nothing of it takes
 * effect, and the log has the reason. */
void proxy_reload(struct proxy *p);

/* outward.as_sender needs CAP_NET_ADMIN. 0, or CSSL_E_CONFIG with @error. */
int proxy_check_as_sender(const struct conf_smtpproxy *conf, char *error, size_t cap);
/* Log what the file leaves open, and an operator should decide. */
void proxy_warn(const struct conf_smtpproxy *conf);
