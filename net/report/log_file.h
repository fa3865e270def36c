/* log_file.h: files that lines are appended to. They may stand in a folder of another user than this process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Did log_open_file() make the file? */
enum log_origin { LOG_FILE_FOUND, LOG_FILE_MADE };
/* Open a file to append lines to, non-blocking, and make it if it is not there. Where another user can have chosen it
 * (the folder, or a link, does not belong to root, or all may write the folder), root follows no symbolic link in its
 * place (-ELOOP), and takes no file that has a second name (-EMLINK). The descriptor, or negative errno. */
int log_open_file(const char *path, enum log_origin *origin);
/* Could log_open_file() open it now? 0 or negative errno; -ENOENT: it is not there, and is not made. */
int log_try_file(const char *path);

/* A disk that filled up took only the beginning of a line: take back its @len bytes, which this process has just
 * appended to @fd. 1; 0: it is no file, or others have written behind them. */
bool log_take_back(int fd, size_t len);
