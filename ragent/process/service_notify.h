/* service_notify.h: what a service manager is told through $NOTIFY_SOCKET (sd_notify(3), protocol only): that this
 * process is ready, and is the service's main process now.
 */
#ifndef CSSL_RAGENT_SERVICE_NOTIFY_H
#define CSSL_RAGENT_SERVICE_NOTIFY_H

/* Nothing where nobody asked for it; a manager that does not listen is logged. */
void service_notify_ready(void);

#endif
