//! The recorder of a running node: [`Recorder`] owns the thread that writes.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use crate::block::{BlockKind, Head};
use crate::header::RecordingHeader;
use crate::segment::{Limits, Ring, Store};
use crate::shared::{Block, FreezeCause, Shared, Stats};
use crate::tape::{Handle, Tape};
use crate::{asked, hand};

/// Bytes of a block: some thousand small frames.
pub const BLOCK_LEN: usize = 256 << 10;

/// Bytes of all blocks: a second of 200,000 frames of 256 bytes, while the disk stalls. Those that
/// are not needed are never touched.
pub const POOL_LEN: usize = 64 << 20;

/// The writer looks at the time so often.
const TICK: Duration = Duration::from_millis(200);

/// The disk takes blocks again when none has failed for so long.
const SAID_FOR: Duration = Duration::from_secs(10);

/// How long the end of the program, or a panic, waits for the writer.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// A writer on its own thread.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    snap: u32,
}

impl Recorder {
    /// Records into this directory. The header's snap length is that of frames.
    pub fn start(directory: &Path, header: RecordingHeader, limits: Limits) -> io::Result<Self> {
        let snap = header.snap;
        let ring = Ring::open(directory, header, limits)?;
        Self::start_into(ring, snap, POOL_LEN, BLOCK_LEN)
    }

    /// Records into this store, with memory for so many bytes in blocks of this size.
    pub fn start_into(
        store: impl Store + 'static,
        snap: u32,
        pool_len: usize,
        block_len: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(pool_len / block_len.max(1), block_len));
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            Writer { shared: theirs, store, is_failing: false, failed_at: None, lost: 0 }.run()
        })?;
        // Nobody else sets it.
        let _ = shared.writer.set(thread.thread().clone());
        Ok(Self { shared, thread: Some(thread), snap })
    }

    /// From now on nothing is ever lost: whoever records waits for the disk. For simulations, where
    /// time stands still meanwhile.
    pub fn be_patient(&self) {
        self.shared.is_patient.store(true, Ordering::Relaxed);
    }

    /// What the packet loop writes to. There is one loop.
    pub fn tap(&self) -> Tape {
        Tape::new(Arc::clone(&self.shared), self.snap)
    }

    /// For everybody else.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// From now on a panic has the recording saved, what led to it kept, and then goes its way.
    pub fn save_on_panic(&self) {
        PanicGuard::install().watch(Some(self));
    }

    /// Writes what there is and ends. If the disk stalls, it waits for two seconds and no longer.
    pub fn finish(mut self) -> Stats {
        self.close();
        self.shared.counts.stats()
    }

    fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        hand::lay_down(&self.shared);
        self.shared.close(None);
        if wait_for(|| self.shared.is_closed.load(Ordering::Acquire)) {
            // It is past its last write.
            let _ = thread.join();
        } else {
            warn!("the disk takes no more of the recording: its end is missing");
        }
    }
}

/// Has the recording that is under way saved when the program panics. One for the life of the
/// program: hooks cannot be taken off.
#[derive(Clone, Debug)]
pub struct PanicGuard(Arc<Mutex<Option<Watched>>>);

/// Whose panic is not saved, because it would have to save itself.
#[derive(Debug)]
struct Watched {
    shared: Arc<Shared>,
    writer: Option<ThreadId>,
}

impl PanicGuard {
    /// Hooks into panics, before whatever hooks there are.
    pub fn install() -> Self {
        let guard = Self(Arc::default());
        let watched = Arc::clone(&guard.0);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Whoever is just changing it has no recording, or two that are whole.
            let shared = watched.try_lock().ok().and_then(|watched| {
                let watched = watched.as_ref()?;
                let is_writer = Some(thread::current().id()) == watched.writer;
                (!is_writer).then(|| Arc::clone(&watched.shared))
            });
            if let Some(shared) = shared {
                save(&shared);
            }
            before(panic);
        }));
        guard
    }

    /// This recording from now on, or none.
    pub fn watch(&self, recorder: Option<&Recorder>) {
        let watched = recorder.map(|recorder| Watched {
            shared: Arc::clone(&recorder.shared),
            writer: recorder.thread.as_ref().map(|thread| thread.thread().id()),
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = watched;
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

fn save(shared: &Arc<Shared>) {
    asked::write(shared);
    hand::lay_down(shared);
    shared.close(Some(FreezeCause::Panic));
    wait_for(|| shared.is_closed.load(Ordering::Acquire));
}

fn wait_for(is_done: impl Fn() -> bool) -> bool {
    let until = Instant::now() + CLOSE_MAX;
    while !is_done() {
        if Instant::now() > until {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// The thread.
struct Writer<S> {
    shared: Arc<Shared>,
    store: S,
    /// The last attempt to write failed; one line per change is enough.
    is_failing: bool,
    /// When it was that one failed.
    failed_at: Option<Instant>,
    /// Drops that were told of.
    lost: u64,
}

impl<S: Store> Writer<S> {
    fn run(mut self) {
        let mut ticked = Instant::now();
        loop {
            // Asked first: what was handed over before that is written.
            let closing = self.shared.closing.load(Ordering::Acquire);
            let mut is_idle = true;
            while let Some(block) = self.shared.next() {
                self.write(block);
                is_idle = false;
                if ticked.elapsed() > TICK {
                    break;
                }
            }
            if ticked.elapsed() > TICK {
                ticked = Instant::now();
                self.tick();
            }
            if is_idle && closing {
                break;
            }
            if is_idle {
                thread::park_timeout(TICK);
            }
        }
        self.store.close();
        self.tick();
        self.shared.is_closed.store(true, Ordering::Release);
    }

    fn write(&mut self, block: Block) {
        let Block { records, sequence, first, last, freeze, .. } = block;
        let head =
            Head { kind: BlockKind::Records, records, sequence, first, last }.emit(&block.bytes);
        let written = self.store.write(&head, &block.bytes, last);
        let counts = &self.shared.counts;
        match written {
            Ok(()) => {
                counts.blocks.fetch_add(1, Ordering::Relaxed);
                counts.bytes.fetch_add((head.len() + block.bytes.len()) as u64, Ordering::Relaxed);
                // On a full disk a small block may fit between two that do not.
                let is_over = self.failed_at.is_some_and(|at| at.elapsed() > SAID_FOR);
                if self.is_failing && is_over {
                    self.is_failing = false;
                    let lost = counts.lost_on_disk.load(Ordering::Relaxed);
                    info!(lost, "the recording can be written again");
                }
            }
            Err(cause) => {
                counts.write_errors.fetch_add(1, Ordering::Relaxed);
                counts.lost_on_disk.fetch_add(records.into(), Ordering::Relaxed);
                self.failed_at = Some(Instant::now());
                if !std::mem::replace(&mut self.is_failing, true) {
                    error!(%cause, "the recording cannot be written: records are lost until it \
                                    can");
                }
            }
        }
        if let Some(cause) = freeze {
            self.store.freeze(cause, last);
        }
        self.shared.give_back(block);
    }

    fn tick(&mut self) {
        let (removed, frozen) = self.store.tick();
        let counts = &self.shared.counts;
        counts.files_removed.fetch_add(removed, Ordering::Relaxed);
        counts.frozen.fetch_add(frozen, Ordering::Relaxed);
        let lost = counts.lost.load(Ordering::Relaxed);
        if lost > self.lost && self.lost == 0 {
            warn!(
                lost,
                "records are lost: the disk is slower than the traffic; the counters say how many"
            );
        }
        self.lost = lost;
    }
}
