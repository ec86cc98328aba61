"""Runs a program as a unit of systemd restricts it, where no systemd runs.

under_unit.py UNIT INSTANCE UID PROGRAM ARGUMENT...
under_unit.py UNIT INSTANCE

The first runs this program as this user, with a state and a run-time directory that are new. The
second starts what is installed, as the unit says: its program, its user, its directories.

The kernel is told what systemd.exec(5) makes of the unit: user, capabilities, which system calls,
families of sockets and namespaces there are, memory that is written or run but not both, a file
system that can only be read, with a state and a run-time directory. What takes a systemd (control
groups and with them devices, what is hidden in /proc) is not done; /home is hidden, and /tmp its
own, from what is installed.
"""
import ctypes
import os
import pwd
import shlex
import stat
import subprocess
import sys

UNIT, INSTANCE, *GIVEN = sys.argv[1:]
with open(UNIT, encoding="utf-8") as unit:
    SETTINGS = [line.strip().partition("=") for line in unit]

ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # SCMP_ACT_ALLOW; SCMP_ACT_ERRNO, whose number is added
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
EQUAL, MASKED = 4, 7
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16, "AF_PACKET": 17}
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13}
# cgroup, uts, ipc, user, pid, net, mount
NAMESPACES = [0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000]

libc = ctypes.CDLL(None, use_errno=True)
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p


class Compare(ctypes.Structure):
    """scmp_arg_cmp of libseccomp."""

    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    ]


def check(done, what):
    if done < 0:
        sys.exit(f"under_unit: {what}: {os.strerror(ctypes.get_errno())}")


def values(name):
    """All values of a setting, in their order."""
    return [value.replace("%i", INSTANCE) for key, _, value in SETTINGS if key == name]


def words(name):
    return " ".join(values(name)).split()


def whom_and_what():
    """User, group and command line."""
    if GIVEN:
        uid, *line = GIVEN
        return int(uid), int(uid), line
    [user], [line] = values("User"), values("ExecStart")
    entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid, shlex.split(line)


def calls(name):
    """The system calls a name stands for: itself, or what is in the set."""
    if not name.startswith("@"):
        return {name}
    line = ["systemd-analyze", "--no-pager", "syscall-filter", name]
    told = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    inside = [line.strip() for line in told.splitlines()[1:]]
    return {call for name in inside if name and name[0] != "#" for call in calls(name)}


def named_calls():
    named = set()
    for value in values("SystemCallFilter"):
        change = set.difference_update if value.startswith("~") else set.update
        for name in value.removeprefix("~").split():
            change(named, calls(name))
    return named


def rule(context, action, call, *compares):
    number = seccomp.seccomp_syscall_resolve_name(call.encode())
    array = (Compare * len(compares))(*compares)
    of = ctypes.c_void_p(context)
    done = seccomp.seccomp_rule_add_array(of, action, number, len(compares), array)
    # The sets are of all machines: this one lacks some calls, whose numbers are below zero.
    if done < 0 and number >= 0:
        sys.exit(f"under_unit: {call}: {os.strerror(-done)}")


def load(context):
    done = seccomp.seccomp_load(ctypes.c_void_p(context))
    if done < 0:
        sys.exit(f"under_unit: seccomp: {os.strerror(-done)}")


def directories():
    """Those of the unit, with their modes; they belong to its user."""
    for above, setting in [("/var/lib", "StateDirectory"), ("/run", "RuntimeDirectory")]:
        for name in words(setting):
            yield f"{above}/{name}", int(values(f"{setting}Mode")[0], 8)


def mount_read_only(path, recursive, is_read_only):
    private, read_only, below, here, mount_setattr = 1 << 18, 1, 0x8000, -100, 442
    change = (read_only, 0) if is_read_only else (0, read_only)
    attributes = (ctypes.c_uint64 * 4)(*change, private, 0)
    flags = below if recursive else 0
    check(libc.syscall(mount_setattr, here, path.encode(), flags, attributes, 32), path)


def mount(source, target, kind=None, flags=0):
    options = b"mode=0755" if kind else None
    check(libc.mount(source.encode(), target.encode(), kind, flags, options), target)


def place():
    """A mount namespace where only the unit's own directories can be written."""
    check(libc.unshare(0x00020000), "unshare")
    is_strict = values("ProtectSystem") == ["strict"]
    if not GIVEN:
        place_installed(is_strict)
        return
    if is_strict:
        mount_read_only("/", True, True)
    # It may lie where what follows hides it, or where the user may not go.
    with open(LINE[0], "rb") as program:
        text = program.read()
    LINE[0] = f"/mnt/{os.path.basename(LINE[0])}"
    mount("unit", "/mnt", b"tmpfs")
    with open(LINE[0], "wb") as program:
        program.write(text)
    os.chmod(LINE[0], 0o755)
    for directory in ["/var/lib", "/run"]:
        mount("unit", directory, b"tmpfs")
    for directory, mode in directories():
        os.mkdir(directory)
        os.chmod(directory, mode)
        os.chown(directory, UID, GID)
    if UID:
        # As on stock Debian, where everybody may open it.
        mount("unit", "/dev/net", b"tmpfs")
        os.mknod("/dev/net/tun", stat.S_IFCHR | 0o666, os.makedev(10, 200))
        os.chmod("/dev/net/tun", 0o666)


def place_installed(is_strict):
    """The same where the package is: its directories outlast the daemon."""
    bind = 0x1000
    for directory, mode in directories():
        os.makedirs(directory, exist_ok=True)
        os.chmod(directory, mode)
        os.chown(directory, UID, GID)
        mount(directory, directory, flags=bind)
    hidden = ["/home", "/root"] if values("ProtectHome") == ["yes"] else []
    own = ["/tmp", "/var/tmp"] if values("PrivateTmp") == ["yes"] else []
    if is_strict:
        mount_read_only("/", True, True)
    for directory in hidden + own:
        mount("unit", directory, b"tmpfs")
    for directory in own:
        os.chmod(directory, 0o1777)
    for directory, _ in directories():
        mount_read_only(directory, False, False)


def give_up_rights():
    """Becomes the user, with the capabilities of the unit and without any other for ever."""
    bounds = {CAPABILITIES[name] for name in words("CapabilityBoundingSet")}
    ambient = {CAPABILITIES[name] for name in words("AmbientCapabilities")}
    for capability in set(range(41)) - bounds:
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    if UID:
        os.setgroups([])
        os.setresgid(GID, GID, GID)
        os.setresuid(UID, UID, UID)
    bits = sum(1 << capability for capability in ambient)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)(bits, bits, bits, 0, 0, 0)
    check(libc.capset(header, sets), "capset")
    for capability in ambient:
        check(libc.prctl(47, 2, capability, 0, 0), "ambient")  # PR_CAP_AMBIENT, _RAISE
    if values("NoNewPrivileges") == ["yes"]:
        libc.prctl(38, 1, 0, 0, 0)


def refuse(named):
    """Two filters: what is refused with these arguments, and calls that are not named at all."""
    some = seccomp.seccomp_init(ALLOW)
    families = words("RestrictAddressFamilies")
    allowed = {FAMILIES[name] for name in families} if families else set(range(46))
    for family in set(range(46)) - allowed:
        rule(some, REFUSE | EAFNOSUPPORT, "socket", Compare(0, EQUAL, family, 0))
    if values("MemoryDenyWriteExecute") == ["yes"]:
        rule(some, REFUSE | EPERM, "mmap", Compare(2, MASKED, 6, 6))
        rule(some, REFUSE | EPERM, "mprotect", Compare(2, MASKED, 4, 4))
    if values("RestrictNamespaces") == ["yes"]:
        rule(some, REFUSE | EPERM, "unshare")
        rule(some, REFUSE | EPERM, "setns")
        rule(some, REFUSE | ENOSYS, "clone3")
        for flag in NAMESPACES:
            rule(some, REFUSE | EPERM, "clone", Compare(0, MASKED, flag, flag))
    load(some)
    if named:
        others = seccomp.seccomp_init(REFUSE | EPERM)
        for call in named:
            rule(others, ALLOW, call)
        load(others)


UID, GID, LINE = whom_and_what()
calls_named = named_calls()
for variable in values("Environment"):
    name, _, value = variable.partition("=")
    os.environ[name] = value.replace("%S", "/var/lib")
os.umask(int(values("UMask")[0], 8))
place()
give_up_rights()
refuse(calls_named)
os.execv(LINE[0], LINE)
