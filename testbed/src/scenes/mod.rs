//! What is shown to people, and judged by the same figures: the demo, a drive past road-side units,
//! the web page in a browser.

pub mod corridor;
pub mod demo;
#[expect(clippy::indexing_slicing, reason = "in JSON what is not there reads as null")]
pub mod page;
