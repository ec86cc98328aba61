/* Loaded into a daemon, does to it what a test machine cannot do to itself. The first two bytes of
 * the file that $TESTBED_TOLD names say what, from when they are 1:
 *
 *   0  the machine has slept for an hour: until then CLOCK_BOOTTIME is an hour behind. Alarms set
 *      before go off too early, which a node does not mind; from then on all is as it should be.
 *   1  every thread that asks for the time has no capabilities any more.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const unsigned char *told;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TESTBED_TOLD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = mmap(NULL, 2, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED)
        told = map;
}

static void give_up_all_rights(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    syscall(SYS_capset, &head, none);
}

int clock_gettime(clockid_t which, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, which, time);
    if (result == 0 && told && which == CLOCK_BOOTTIME && !told[0])
        time->tv_sec -= 3600;
    if (told && told[1])
        give_up_all_rights();
    return (int)result;
}
