//! Whose turn it is.
//!
//! One task drives a connection of a client and the one to its server. Each has a waker of its
//! own, so that only what has something to do is polled: what one of the two tells the other
//! is dealt with at once, without going through the runtime.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// After so many rounds other tasks get their turn.
const MOST_ROUNDS: usize = 8;

/// Something that a task drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The connection of the client.
    Client,
    /// The connection to the server.
    Server,
    /// Whatever ends the two.
    End,
}

impl Whose {
    const ALL: [Self; 3] = [Self::Client, Self::Server, Self::End];
}

/// What a task drives, and which of it has something to do.
pub(super) struct Turns {
    task: Arc<Task>,
    turns: [Arc<Turn>; 3],
    wakers: [Waker; 3],
    /// The connection to the server, and its number.
    server: RefCell<Option<(u32, Server)>>,
    last: Cell<u32>,
}

type Server = Pin<Box<dyn Future<Output = ()>>>;

/// The task as wakers see it.
#[derive(Default)]
struct Task {
    waker: Mutex<Option<Waker>>,
    /// It looks by itself for what has become due.
    runs: AtomicBool,
}

struct Turn {
    due: AtomicBool,
    task: Arc<Task>,
}

impl Turns {
    pub(super) fn new() -> Rc<Self> {
        let task = Arc::<Task>::default();
        let turns = Whose::ALL.map(|_| {
            Arc::new(Turn {
                due: AtomicBool::new(true),
                task: Arc::clone(&task),
            })
        });
        Rc::new(Self {
            task,
            wakers: turns.each_ref().map(|turn| Arc::clone(turn).into()),
            turns,
            server: RefCell::default(),
            last: Cell::new(0),
        })
    }

    /// Has `take` poll what is due until nothing is. After each round `done` is called.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(Whose, &mut Context<'_>) -> Poll<T>,
        done: impl Fn(),
    ) -> Poll<T> {
        self.task.is_woken_by(cx.waker());
        for _ in 0..MOST_ROUNDS {
            self.task.runs.store(true, Ordering::SeqCst);
            for whose in Whose::ALL {
                let at = whose as usize;
                if !self.turns[at].due.swap(false, Ordering::SeqCst) {
                    continue;
                }
                let polled = take(whose, &mut Context::from_waker(&self.wakers[at]));
                if polled.is_ready() {
                    done();
                    return polled;
                }
            }
            done();
            // From here on wakers wake the task; what came before is seen here.
            self.task.runs.store(false, Ordering::SeqCst);
            let is_due = |turn: &Arc<Turn>| turn.due.load(Ordering::SeqCst);
            if !self.turns.iter().any(is_due) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// It has something to do.
    pub(super) fn is_due(&self, whose: Whose) {
        self.turns[whose as usize].due.store(true, Ordering::SeqCst);
    }

    /// Does something that wakes it; where `is_over` of the result, for nothing. hyper wakes
    /// whoever sent a chunk when that is taken, be it the last one.
    pub(super) fn without_waking<T>(
        &self,
        whose: Whose,
        act: impl FnOnce() -> T,
        is_over: impl FnOnce(&T) -> bool,
    ) -> T {
        let due = &self.turns[whose as usize].due;
        let before = due.load(Ordering::SeqCst);
        let done = act();
        if is_over(&done) && self.task.runs.load(Ordering::SeqCst) {
            due.store(before, Ordering::SeqCst);
        }
        done
    }

    /// Drives this connection to the server for as long as what is returned is kept. There is
    /// one at a time.
    pub(super) fn drive(self: Rc<Self>, server: impl Future<Output = ()> + 'static) -> Driven {
        let number = self.last.get().wrapping_add(1);
        self.last.set(number);
        let before = self.server.replace(Some((number, Box::pin(server))));
        drop(before);
        self.is_due(Whose::Server);
        Driven {
            turns: self,
            number,
        }
    }

    /// Polls the connection to the server, if there is one.
    pub(super) fn poll_server(&self, cx: &mut Context<'_>) {
        // Not borrowed meanwhile: what is polled may end it.
        let Some((number, mut server)) = self.server.take() else {
            return;
        };
        if server.as_mut().poll(cx).is_pending() && self.last.get() == number {
            self.server.replace(Some((number, server)));
        }
    }
}

/// A connection to the server that is driven. Dropping this closes it at once.
pub(super) struct Driven {
    turns: Rc<Turns>,
    number: u32,
}

impl Drop for Driven {
    fn drop(&mut self) {
        let turns = &self.turns;
        if turns.last.get() == self.number {
            turns.last.set(self.number.wrapping_add(1));
            let server = turns.server.take();
            drop(server);
        }
    }
}

impl Task {
    fn is_woken_by(&self, waker: &Waker) {
        let mut known = self.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let was_due = self.due.swap(true, Ordering::SeqCst);
        if was_due || self.task.runs.load(Ordering::SeqCst) {
            return;
        }
        if let Some(waker) = &*self.task.lock() {
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// What is polled, in its order, while each of these wakes what stands beside it once.
    fn polled(turns: &Turns, wakes: &[(Whose, Whose)]) -> (Vec<Whose>, usize) {
        let (mut seen, mut left) = (Vec::new(), wakes.to_vec());
        let count = Arc::<Count>::default();
        let waker = Arc::clone(&count).into();
        let take = |whose, _: &mut Context<'_>| {
            seen.push(whose);
            if let Some(at) = left.iter().position(|(by, _)| *by == whose) {
                let (_, woken) = left.remove(at);
                turns.wakers[woken as usize].wake_by_ref();
            }
            Poll::<()>::Pending
        };
        let polled = turns.poll(&mut Context::from_waker(&waker), take, || {});
        assert!(polled.is_pending());
        (seen, count.0.load(Ordering::SeqCst))
    }

    #[test]
    fn only_what_was_woken_is_polled_and_the_task_is_not_woken_by_itself() {
        use Whose::{Client, End, Server};
        let turns = Turns::new();
        assert_eq!(polled(&turns, &[]), (vec![Client, Server, End], 0));
        assert_eq!(polled(&turns, &[]), (vec![], 0));
        turns.wakers[Server as usize].wake_by_ref();
        let wakes = [(Server, Client), (Client, Server)];
        assert_eq!(polled(&turns, &wakes), (vec![Server, Client, Server], 0));
        turns.is_due(Client);
        let endless = [(Client, Client); 50];
        assert_eq!(polled(&turns, &endless), (vec![Client; MOST_ROUNDS], 1));
    }

    #[test]
    fn a_wake_from_outside_wakes_the_task_once() {
        let turns = Turns::new();
        let count = Arc::<Count>::default();
        let waker = Arc::clone(&count).into();
        let mut cx = Context::from_waker(&waker);
        assert!(
            turns
                .poll(&mut cx, |_, _| Poll::<()>::Pending, || {})
                .is_pending()
        );
        turns.wakers[0].wake_by_ref();
        turns.wakers[0].wake_by_ref();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_connection_that_ends_itself_is_not_polled_again() {
        let turns = Turns::new();
        let driven: Rc<RefCell<Option<Driven>>> = Rc::default();
        let polls = Rc::new(Cell::new(0));
        let (own, count) = (Rc::clone(&driven), Rc::clone(&polls));
        let server = std::future::poll_fn(move |_| {
            count.set(count.get() + 1);
            own.borrow_mut().take();
            Poll::Pending
        });
        *driven.borrow_mut() = Some(Rc::clone(&turns).drive(server));
        let mut cx = Context::from_waker(Waker::noop());
        turns.poll_server(&mut cx);
        turns.poll_server(&mut cx);
        assert_eq!(polls.get(), 1);
        assert!(turns.server.borrow().is_none());
    }
}
