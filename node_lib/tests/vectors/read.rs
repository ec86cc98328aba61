//! Reads the test vectors: frames in hexadecimal, `#` starts a comment. Tests and benches share
//! them.

/// One frame from `tests/vectors`.
pub(crate) struct Vector {
    /// File name without its ending.
    pub(crate) name: String,
    /// The whole frame, Ethernet header included, without padding.
    pub(crate) frame: Vec<u8>,
}

/// Every vector, in the order of the names.
#[allow(clippy::panic, reason = "a broken vector is a broken test")]
pub(crate) fn all() -> Vec<Vector> {
    // Also of `fuzz`, beside this crate.
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../node_lib/tests/vectors");
    let mut vectors: Vec<Vector> = std::fs::read_dir(directory)
        .expect("the vectors are part of the source")
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "hex"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let frame = bytes(&text).unwrap_or_else(|bad| panic!("{name}: {bad:?} is not a byte"));
            Vector { name, frame }
        })
        .collect();
    vectors.sort_by(|a, b| a.name.cmp(&b.name));
    vectors
}

fn bytes(text: &str) -> Result<Vec<u8>, &str> {
    text.lines()
        .filter_map(|line| line.split('#').next())
        .flat_map(str::split_whitespace)
        .map(|byte| match byte.len() {
            2 => u8::from_str_radix(byte, 16).map_err(|_| byte),
            _ => Err(byte),
        })
        .collect()
}
