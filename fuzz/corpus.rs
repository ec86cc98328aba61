//! Writes what `cargo fuzz` begins with, the vectors of the wire format, to `fuzz/corpus/`.

use std::io;
use std::path::Path;
use std::{fs, process::ExitCode};

#[path = "../node_lib/tests/vectors/read.rs"]
mod read;

fn main() -> ExitCode {
    match write() {
        Ok(count) => {
            println!("{count} inputs for each target");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> io::Result<usize> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let vectors = read::all();
    for target in ["messages", "nodes"] {
        fs::create_dir_all(dir.join(target))?;
    }
    for vector in &vectors {
        fs::write(dir.join("messages").join(&vector.name), &vector.frame)?;
        // Heard ten milliseconds after the start.
        let len = u8::try_from(vector.frame.len()).unwrap_or(u8::MAX);
        let frame = vector.frame.get(..len.into()).unwrap_or(&vector.frame);
        fs::write(dir.join("nodes").join(&vector.name), [&[0, 10, len], frame].concat())?;
    }
    Ok(vectors.len())
}
