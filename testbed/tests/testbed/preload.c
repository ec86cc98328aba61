/* Loaded into a daemon, does to it what a test machine cannot do to itself. The first bytes of the
 * file that $TESTBED_TOLD names say what, from when they are 1:
 *
 *   0  the machine has slept for an hour: until then CLOCK_BOOTTIME is an hour behind. Alarms set
 *      before go off too early, which a node does not mind; from then on all is as it should be.
 *   1  every thread that asks for the time has no capabilities any more.
 *   2  each time it is asked for, some bytes of memory are never given back.
 *   3  somebody has set the clock: the date is ten years ahead; from 2 on, ten years back.
 *   4  the next time its first thread asks for the date, it is refused. The library of Rust takes
 *      that for impossible, and panics.
 *   5  each time it is asked for, a processor is busy for 30 ms.
 *
 * With $TESTBED_PACE, a number, its CLOCK_BOOTTIME passes so many times as fast as everybody
 * else's from when it is loaded, and alarms on that clock go off so much sooner.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, TOLD = 6, WASTED_EACH_TIME = 30000000, LOST_EACH_TIME = 64, TEN_YEARS = 315576000 };

static volatile const unsigned char *told;
static long long pace = 1, loaded;

static long long nanoseconds(const struct timespec *time) {
    return (long long)time->tv_sec * SECOND + time->tv_nsec;
}

static struct timespec timespec_of(long long nanoseconds) {
    return (struct timespec){nanoseconds / SECOND, nanoseconds % SECOND};
}

__attribute__((constructor)) static void begin(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    loaded = nanoseconds(&now);
    const char *faster = getenv("TESTBED_PACE");
    if (faster)
        pace = atoll(faster);
    const char *path = getenv("TESTBED_TOLD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = mmap(NULL, TOLD, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED)
        told = map;
}

static void give_up_all_rights(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    syscall(SYS_capset, &head, none);
}

static void waste_processor(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    long long until = nanoseconds(&now) + WASTED_EACH_TIME;
    while (nanoseconds(&now) < until)
        syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
}

int clock_gettime(clockid_t which, struct timespec *time) {
    static int was_refused;
    if (told && told[4] && which == CLOCK_REALTIME && !was_refused && gettid() == getpid()) {
        was_refused = 1;
        errno = EINVAL;
        return -1;
    }
    long result = syscall(SYS_clock_gettime, which, time);
    if (result == 0 && which == CLOCK_BOOTTIME) {
        if (told && !told[0])
            time->tv_sec -= 3600;
        if (pace > 1)
            *time = timespec_of(loaded + (nanoseconds(time) - loaded) * pace);
    }
    if (result == 0 && which == CLOCK_REALTIME && told && told[3])
        time->tv_sec += told[3] == 1 ? TEN_YEARS : -TEN_YEARS;
    if (told && told[5])
        waste_processor();
    if (told && told[1])
        give_up_all_rights();
    if (told && told[2])
        *(volatile char *)malloc(LOST_EACH_TIME) = 1;
    return (int)result;
}

/* A daemon sets its alarms to a time of its clock, and never to an interval. */
int timerfd_settime(int timer, int flags, const struct itimerspec *to, struct itimerspec *before) {
    struct itimerspec once = *to;
    long long at = nanoseconds(&to->it_value);
    if (pace > 1 && (flags & TFD_TIMER_ABSTIME) && at > loaded)
        once.it_value = timespec_of(loaded + (at - loaded) / pace);
    return (int)syscall(SYS_timerfd_settime, timer, flags, &once, before);
}
