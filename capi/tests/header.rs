//! `include/v2x.h` is what cbindgen makes of the sources.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::fs;
use std::path::Path;

use cbindgen::{Builder, Config};

#[test]
fn the_header_is_that_of_the_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::from_file(here.join("cbindgen.toml")).unwrap();
    let sources = ["src/lib.rs", "src/ffi.rs"].map(|name| here.join(name));
    let builder = sources.iter().fold(Builder::new(), |builder, source| builder.with_src(source));
    let mut made = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();

    let file = here.join("include/v2x.h");
    if std::env::var_os("V2X_WRITE_HEADER").is_some() {
        fs::create_dir_all(here.join("include")).unwrap();
        fs::write(&file, &made).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap();
    assert!(
        kept == made,
        "capi/include/v2x.h is not that of the sources: V2X_WRITE_HEADER=1 mends"
    );
}
