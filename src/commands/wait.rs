//! Waiting for news while somebody reads our output.

use std::io;
use std::time::Duration;

/// How often files are looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// Waits for as long as [`INTERVAL`].
///
/// # Errors
/// When nobody reads our output any more.
#[cfg(unix)]
pub(crate) fn a_moment() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let out = io::stdout();
    let timeout = Timespec::try_from(INTERVAL).ok();
    // Asked for nothing, it tells what is always told: that the other end is gone.
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        // Something else is with it, which writing will tell.
        Ok(1..) | Err(_) => {
            std::thread::sleep(INTERVAL);
            Ok(())
        }
        Ok(0) => Ok(()),
    }
}

/// Waits for as long as [`INTERVAL`].
///
/// # Errors
/// None here: that nobody reads any more is seen when something is written.
#[cfg(not(unix))]
pub(crate) fn a_moment() -> io::Result<()> {
    std::thread::sleep(INTERVAL);
    Ok(())
}
