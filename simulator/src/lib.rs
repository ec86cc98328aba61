//! Scenarios of vehicles and road-side units, run on the real nodes in virtual time.
//!
//! `v2xsim` is this library with a command line; `docs/simulator.md` describes its files and
//! results.
//!
//! ```text
//! scenario file ──► scenario::Source ──► Scenario ─┐
//! movements ──────► mobility::read ──► Movement ───┴─► Casting ─► per seed: Cast ─► Stage, a World
//!                                                                   │ looked at every 100 ms
//! tables, JSON, CSV, SVG ◄── report ◄── Summary ◄── Record ◄── measure::run
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`scenario`] | the file, checked: every error says where and what was expected |
//! | [`mobility`] | movements of vehicles in other programs' formats |
//! | [`cast`] | every node, client and flow by name |
//! | [`casting`] | what the casts of all seeds are drawn from |
//! | `stage` | a world that runs, from a cast and a seed |
//! | [`measure`] | one run and its [`Record`](measure::Record); `watch`: nodes with an observer |
//! | [`cost`] | what simulating took of the machine |
//! | [`campaign`] | variants and seeds on several threads |
//! | [`summary`] | many runs in a few numbers |
//! | [`report`] | tables, JSON, CSV and pictures |
//! | [`sweep`] | many scenes, held against goals |
//! | [`links`] | who hears whom how well, for replaying elsewhere; `link_file`: read from a file |
//! | [`flooding`], [`batman`] | others to compare with: plain flooding, and a model of B.A.T.M.A.N. IV |
//! | `ideal` | routes that nobody has to learn: what is lost all the same |
//! | [`ships`] | what of a simulation the daemons do not run |

pub mod batman;
pub mod campaign;
pub mod cast;
pub mod casting;
pub mod cost;
pub mod flooding;
mod ideal;
mod link_file;
pub mod links;
pub mod measure;
pub mod mobility;
pub mod report;
pub mod scenario;
pub mod ships;
mod stage;
pub mod summary;
pub mod sweep;
mod watch;
