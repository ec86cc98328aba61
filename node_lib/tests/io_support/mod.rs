//! What tests with real interfaces stand on: a network namespace each, and the operator's hand.

use std::process::Command;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use node_lib::device::Device;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Runs `test` on a thread of its own, in a network namespace of its own.
pub(crate) fn in_namespace<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    if !nix::unistd::geteuid().is_root() {
        return again_as_root_of_a_user_namespace();
    }
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect(
            "these tests make a network namespace each: they need CAP_SYS_ADMIN or user namespaces",
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A plain user becomes root where only its own namespaces count. That takes a process with a
/// single thread, which a test program is not, so this one test runs again in a process of its own.
fn again_as_root_of_a_user_namespace() {
    let test = std::thread::current().name().expect("the test runner names threads").to_owned();
    let itself = std::env::current_exe().unwrap();
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .arg(itself)
        .args(["--exact", &test, "--nocapture"])
        .status()
        .expect("`unshare` of util-linux makes the user namespace a plain user needs");
    assert!(status.success(), "{test} failed in its user namespace");
}

/// The operator's hand. Its child process is in the namespace of the calling thread.
pub(crate) fn ip(line: &str) -> String {
    operate("ip", line)
}

/// Another tool of the operator's.
pub(crate) fn operate(tool: &str, line: &str) -> String {
    let output = Command::new(tool)
        .args(line.split_whitespace())
        .output()
        .expect("these tests need `ip` and `tc` of iproute2");
    assert!(output.status.success(), "{tool} {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until one of these devices has something to read.
pub(crate) fn wait_readable(devices: &[&dyn Device], limit: Duration) -> bool {
    wait(devices, PollFlags::IN, limit)
}

/// Waits for something to happen to one of these devices; one that nobody can wait on is left out.
pub(crate) fn wait(devices: &[&dyn Device], what: PollFlags, limit: Duration) -> bool {
    let descriptors = devices.iter().filter_map(|device| device.descriptor());
    let mut fds: Vec<_> = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, what)).collect();
    poll(&mut fds, Some(&Timespec::try_from(limit).unwrap())).unwrap() > 0
}
