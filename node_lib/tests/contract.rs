//! Some nodes stand between a driver and another node: one records, one measures. What they do not
//! pass on, the other never hears; and a method of the contract that has a default would go missing
//! in silence. The same holds for commands.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of the methods in the block that opens with this line.
fn methods(file: &str, opening: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = fs::read_to_string(path).unwrap();
    let block = text.lines().skip_while(|line| *line != opening).take_while(|line| *line != "}");
    let names = block.filter_map(|line| line.strip_prefix("    fn ")?.split(['(', '<']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_method_of_the_contract_is_passed_on() {
    let contract = methods("node_lib/src/control/node.rs", "pub trait Node {");
    assert!(contract.contains("handle_wire") && contract.contains("poll_event"), "{contract:?}");
    for (file, opening) in [
        ("recorder/src/recorded.rs", "impl<N: Node> Node for Recorded<N> {"),
        ("simulator/src/watch.rs", "impl<N: Node> Node for Watched<N> {"),
    ] {
        assert_eq!(methods(file, opening), contract, "{file}");
    }
    let commands = methods("node_lib/src/runtime/command.rs", "pub trait Commands {");
    assert!(commands.contains("poll_command"), "{commands:?}");
    for (file, opening) in [
        ("node_lib/src/runtime/inside.rs", "impl<C: Commands> Commands for Attended<C> {"),
        ("daemon/src/supervisor.rs", "impl<C: Commands> Commands for Supervised<C> {"),
    ] {
        assert_eq!(methods(file, opening), commands, "{file}");
    }
}
