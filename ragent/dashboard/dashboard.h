/* dashboard.h: the page at `/` of the control API, one self-contained document (made of the files beside this one), and
 * the Content-Security-Policy (CSP Level 3) it is sent with: its own style and script, requests to where it came from,
 * nothing else.
 */
#ifndef CSSL_RAGENT_DASHBOARD_H
#define CSSL_RAGENT_DASHBOARD_H

extern const char dashboard_page[];
extern const char dashboard_policy[];

#endif
