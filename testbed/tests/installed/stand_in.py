#!/usr/bin/env python3
"""What an operator has and a test has not: each name does here what it would do there.

A unit is started as systemd would, by what stands in it, through under_unit.py beside this file. Of
an instance there is a process id in /run/units, and its log.
"""
import fnmatch
import glob
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
STATE = "/run/units"
WANTED = "/etc/systemd/system/multi-user.target.wants"
UNITS = "/usr/lib/systemd/system"
# Until the next line is typed. A vehicle is attached by then.
TYPING = 2


def template(name):
    """Path of the file of a unit, and its instance."""
    unit, _, instance = name.removesuffix(".service").partition("@")
    return f"{UNITS}/{unit}@.service", instance


def setting(name, key):
    path, instance = template(name)
    with open(path, encoding="utf-8") as unit:
        values = [line.partition("=")[2].strip() for line in unit if line.startswith(f"{key}=")]
    return values[-1].replace("%i", instance) if values else ""


def process_id(name):
    """Of a unit that runs."""
    try:
        with open(f"{STATE}/{name}.pid", encoding="utf-8") as file:
            pid = int(file.read())
        os.kill(pid, 0)
        return pid
    except (FileNotFoundError, ProcessLookupError):
        return None


def running(patterns):
    names = [os.path.basename(path).removesuffix(".pid") for path in glob.glob(f"{STATE}/*.pid")]
    full = [pattern.removesuffix(".service") for pattern in patterns]
    matches = {name for name in names for pattern in full if fnmatch.fnmatch(name, pattern)}
    return sorted(name for name in matches if process_id(name))


def start(name):
    if process_id(name):
        return
    os.makedirs(STATE, exist_ok=True)
    # As systemd has it for Type=notify: started is what says so.
    where = f"{STATE}/{name}.notify"
    if os.path.exists(where):
        os.remove(where)
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(where)
    os.chmod(where, 0o777)
    told.settimeout(10)
    path, instance = template(name)
    with open(f"{STATE}/{name}.log", "ab") as log:
        started = subprocess.Popen(
            [sys.executable, f"{HERE}/under_unit.py", path, instance],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "NOTIFY_SOCKET": where},
        )
    try:
        while not told.recv(4096).startswith(b"READY=1"):
            pass
    except TimeoutError:
        started.kill()
        with open(f"{STATE}/{name}.log", encoding="utf-8") as log:
            sys.exit(f"systemctl: {name} is not ready:\n{log.read()}")
    with open(f"{STATE}/{name}.pid", "w", encoding="utf-8") as file:
        file.write(str(started.pid))


def stop(name):
    pid = process_id(name)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + int(setting(name, "TimeoutStopSec"))
    while process_id(name):
        if time.monotonic() > deadline:
            sys.exit(f"systemctl: {name} does not end")
        time.sleep(0.02)
    os.remove(f"{STATE}/{name}.pid")


def systemctl(action, *names):
    match action, names:
        case "daemon-reload", []:
            pass
        case "enable", ["--now", name]:
            os.makedirs(WANTED, exist_ok=True)
            os.symlink(template(name)[0], f"{WANTED}/{name}.service")
            start(name)
            time.sleep(TYPING)
        case "start", [name]:
            start(name)
        case "stop", names:
            for name in running(names):
                stop(name)
        case "try-restart", names:
            for name in running(names):
                stop(name)
                start(name)
        case "reload", [name]:
            line = setting(name, "ExecReload").replace("$MAINPID", str(process_id(name)))
            subprocess.run(shlex.split(line), check=True)
        case _:
            sys.exit(f"systemctl: nothing here does {action} {' '.join(names)}")


def main(called, words):
    match called, words:
        case "sudo", words:
            os.execvp(words[0], words)
        case "systemctl", [action, *names]:
            systemctl(action, *names)
        case "journalctl", ["-fu" | "-u", name]:
            with open(f"{STATE}/{name}.log", encoding="utf-8") as log:
                print(log.read(), end="")
        case "make", ["deb"]:
            os.makedirs("target/debian")
            for package in glob.glob(f"{HERE}/*.deb"):
                shutil.copy(package, "target/debian")
        case "wireshark", ["-X", script, capture]:
            os.execvp("tshark", ["tshark", "-X", script, "-r", capture])
        case _:
            sys.exit(f"{called}: nothing here does {' '.join(words)}")


main(os.path.basename(sys.argv[0]), sys.argv[1:])
