/* Makes writes to journals slow, as a disk that is busy or far away does. Loaded with LD_PRELOAD
 * into the relay; SLOW_DISK_MS says how slow, and each write is noted in the file SLOW_DISK_NOTES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_journal(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    return n > 4 && memcmp(path + n - 4, ".atj", 4) == 0;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    const char *notes = getenv("SLOW_DISK_NOTES");
    if (notes && is_journal(fd)) {
        int note = open(notes, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (note >= 0) {
            real(note, "slow\n", 5);
            close(note);
        }
        usleep(atoi(getenv("SLOW_DISK_MS")) * 1000);
    }
    return real(fd, bytes, count);
}
