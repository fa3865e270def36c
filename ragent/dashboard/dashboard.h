/* dashboard.h: the page at `/` of the control API, one self-contained document (made of the files beside this one), and
 * its Content-Security-Policy (CSP Level 3). The policy allows only its own style and script, and requests to its own
 * origin.
 */
#pragma once

extern const char dashboard_page[];
extern const char dashboard_policy[];
