//! The few system calls that have no safe wrapper, in one place.
//!
//! Why `unsafe` at all: a guardian that shares our memory pages needs `fork` (starting a
//! second program would cost milliseconds and megabytes per server), a death signal has to
//! be set between `fork` and `exec`, the descriptors that the guardian must not keep open
//! are known by number only, and asking for a signal's disposition is not wrapped anywhere.
#![expect(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs `child` in a forked copy of this process, which then exits with status 0. Returns
/// the copy's process id.
///
/// Must be called while this process has a single thread: the copy has only the calling
/// thread, so a lock held by another one (of the allocator, say) would stay locked in it.
pub(super) fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: single-threaded by contract, so the child is a complete copy and may run any
    // code; it never returns into the caller's frames.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: ends the copy without running exit handlers that belong to the parent.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        pid => Ok(pid),
    }
}

/// Closes every descriptor from `first` up.
pub(super) fn close_from(first: i32) {
    #[cfg(target_os = "linux")]
    // SAFETY: called in the guardian only, which owns nothing above `first`.
    if unsafe { libc::syscall(libc::SYS_close_range, first, i32::MAX, 0) } == 0 {
        return;
    }
    for fd in first..1024 {
        // SAFETY: as above; closing a number that is not open does nothing.
        unsafe { libc::close(fd) };
    }
}

/// Asks the kernel to send SIGTERM to the command's process when the calling thread ends.
///
/// The signal follows the *thread* that spawns, so spawn from one that lives as long as the
/// process. Linux only; elsewhere the guardian alone has to do.
pub(super) fn set_death_signal(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        let arm = move || {
            // SAFETY: prctl and getppid are async-signal-safe and touch no memory of ours.
            unsafe {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have ended before the call above could take effect.
                if libc::getppid().cast_unsigned() != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            Ok(())
        };
        // SAFETY: the closure allocates nothing and makes only async-signal-safe calls.
        unsafe { command.pre_exec(arm) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Whether this process was started with the signal ignored (as `nohup` does).
pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: a zeroed sigaction is a valid value to be overwritten; the call only reads the
    // disposition.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}
