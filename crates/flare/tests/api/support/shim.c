/* Preloaded into Flare, it fails what the machine does not, while a file exists that the test makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int wanted(const char *variable)
{
    const char *path = getenv(variable);
    return path != NULL && access(path, F_OK) == 0;
}

static int failed(int error)
{
    errno = error;
    return -1;
}

int fsync(int file)
{
    return wanted("SHIM_FAIL_SYNC") ? failed(EIO) : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    return wanted("SHIM_FAIL_SYNC") ? failed(EIO) : (int)syscall(SYS_fdatasync, file);
}

/* Rust's clock panics where the system's fails: here on delivery threads. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    char name[16] = "";
    if (clock == CLOCK_MONOTONIC && prctl(PR_GET_NAME, name) == 0
        && strncmp(name, "flare-deliver", strlen("flare-deliver")) == 0 && wanted("SHIM_FAIL_CLOCK"))
        return failed(EINVAL);
    return (int)syscall(SYS_clock_gettime, clock, time);
}
