//! Movement files as their programs write them, and as they must not be.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use node_lib::Timestamp;
use simulator::mobility::{self, Movement, Point};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1000 * seconds)
}

/// All fixtures but ns-2's are the same three vehicles of one run of SUMO.
fn check(movement: &Movement) {
    let names: Vec<&str> = movement.vehicles.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["0", "1", "2"]);
    let lens: Vec<usize> = movement.vehicles.iter().map(|v| v.way.len()).collect();
    assert_eq!(lens, [12, 8, 4]);
    let second = &movement.vehicles[1];
    assert_eq!(second.position_at(at(3)), None);
    assert_eq!(second.position_at(at(4)), Some(Point::new(98.4, 187.7)));
    assert_eq!(second.position_at(at(11)), Some(Point::new(97.79, 104.31)));
    assert_eq!(second.position_at(at(12)), None);
}

#[test]
fn every_format_tells_the_same_story() {
    for name in ["sumo.fcd.xml", "sumo.fcd.xml.gz", "sumo.fcd.csv", "ours.csv"] {
        check(&mobility::read(&fixture(name)).unwrap());
    }
}

#[test]
fn ns2_nodes_leave_when_told_and_stay_where_they_arrive() {
    let movement = mobility::read(&fixture("sumo.ns2.tcl")).unwrap();
    assert_eq!(movement.vehicles.len(), 3);
    let second = &movement.vehicles[1];
    assert_eq!(second.position_at(at(0)), Some(Point::new(98.4, 187.7)));
    // Told at second 5 to drive 13.77 m at 13.77 m/s.
    let there = second.position_at(at(6)).unwrap();
    assert!(there.distance_m(Point::new(98.4, 173.93)) < 0.001, "{there:?}");
    let last = second.position_at(at(1000)).unwrap();
    assert!(last.distance_m(Point::new(97.79, 104.31)) < 0.001, "{last:?}");
}

/// What reading this text says.
fn complaint(text: &[u8]) -> String {
    let mut file = tempfile::Builder::new().prefix("moves").tempfile().unwrap();
    file.write_all(text).unwrap();
    let error = mobility::read(file.path()).unwrap_err().to_string();
    let name = file.path().display().to_string();
    error.strip_prefix(&name).unwrap_or_else(|| panic!("no file name in {error}")).to_owned()
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let ours = "time_s,vehicle,x_m,y_m\n";
    let sumo = "timestep_time;vehicle_id;vehicle_x;vehicle_y\n";
    let xml = |inner: &str| format!("<fcd-export>\n{inner}\n</fcd-export>\n");
    let ns2 = "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n";
    for (text, expected) in [
        (
            String::new(),
            ": no vehicle in it; expected CSV, SUMO floating-car data or ns-2 movement",
        ),
        (
            "a,b\n1,2\n".into(),
            ":1: no column time_s; expected the columns time_s, vehicle, x_m, y_m",
        ),
        (ours.into(), ": no vehicle in it; expected at least one line after the header"),
        (format!("{ours}0,a,1,2\n1,a,x,2\n"), ":3: x_m \"x\"; expected metres, a number"),
        (format!("{ours}0,a,1,nan\n"), ":2: y_m \"nan\"; expected metres, a number"),
        (format!("{ours}-1,a,1,2\n"), ":2: time_s \"-1\"; expected seconds, 0 or more"),
        (format!("{ours}1,,1,2\n"), ":2: vehicle \"\"; expected the name of a vehicle"),
        (format!("{ours}1,a,1\n"), ":2: 3 columns; expected 4 as in the header"),
        (
            format!("{ours}5,a,1,2\n4,b,1,2\n5,a,1,3\n"),
            ":4: time_s \"5\"; expected a time after 5.000000 s, where vehicle a was before",
        ),
        (
            "timestep_time;vehicle_id;vehicle_y\n0;a;1\n".into(),
            ":1: no column vehicle_x; expected the columns timestep_time, vehicle_id, vehicle_x, \
             vehicle_y",
        ),
        (format!("{sumo}0.00;a;1;\n"), ":2: vehicle_y \"\"; expected metres, a number"),
        ("<html>\n</html>\n".into(), ":1: <html>; expected <fcd-export>"),
        (xml(""), ": no vehicle in it; expected <timestep> with <vehicle> in <fcd-export>"),
        (xml("<timestep/>"), ":2: <timestep> without time; expected time: seconds, 0 or more"),
        (
            xml("<vehicle id=\"a\" x=\"1\" y=\"1\"/>"),
            ":2: <vehicle> outside of a time step; expected <timestep time=\"…\"> around it",
        ),
        (
            xml("<timestep time=\"0\">\n<vehicle id=\"a\" x=\"1\"/></timestep>"),
            ":3: <vehicle> without y; expected y: metres, a number",
        ),
        (
            xml("<timestep time=\"0\">\n<vehicle id=\"a\" x=\"1\" y=\"far\"/></timestep>"),
            ":3: y \"far\"; expected metres, a number",
        ),
        (
            format!("{ns2}$ns_ at 1 \"$node_(0) setdest 1 2\"\n"),
            ":3: \"$ns_ at 1 \"$node_(0) setdest 1 2\"\"; expected $node_(0) set X_ 12.5 or \
             $ns_ at 1.5 \"$node_(0) setdest 20 30 13.9\"",
        ),
        (
            format!("{ns2}$ns_ at 1 \"$node_(0) setdest 1 2 -3\"\n"),
            ":3: \"$ns_ at 1 \"$node_(0) setdest 1 2 -3\"\"; expected a speed in m/s, 0 or more",
        ),
        (
            "$node_(4) set X_ 1\n".into(),
            ":1: node 4 has no place to start from; expected $node_(0) set X_ 12.5 and the same \
             for Y_",
        ),
        ("# nothing\n".into(), ": no vehicle in it; expected $node_(0) set X_ 12.5"),
    ] {
        assert_eq!(complaint(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn broken_files_are_refused_wherever_they_break() {
    let complaint_of = |text: &[u8]| complaint(text);
    assert!(complaint_of(b"<fcd-export>\n<timestep time=\"0\"></wrong>").contains(":2: "));
    assert!(complaint_of(b"time_s,vehicle,x_m,y_m\n0,\xff\xfe,1,1\n").contains("no UTF-8"));
    // A compressed file that ends early.
    let whole = std::fs::read(fixture("sumo.fcd.xml.gz")).unwrap();
    assert!(!complaint_of(&whole[..whole.len() / 2]).is_empty());
    let missing = mobility::read(Path::new("/no/such/file.csv")).unwrap_err().to_string();
    assert!(missing.starts_with("/no/such/file.csv: "), "{missing}");
}

/// SUMO writes degrees with `--fcd-output.geo`: the same town, east and north of Greenwich.
#[test]
fn degrees_are_refused_where_somebody_moves() {
    let fcd = std::fs::read_to_string(fixture("sumo.fcd.csv")).unwrap();
    // As SUMO would project the fixture: metres around 44.49 °N, 11.33 °E.
    let (mut geo, mut column) = (String::new(), Vec::new());
    for (number, line) in fcd.lines().enumerate() {
        let mut fields: Vec<String> = line.split(';').map(str::to_owned).collect();
        if number == 0 {
            let place = |name: &str| fields.iter().position(|field| field == name).unwrap();
            column = vec![place("vehicle_x"), place("vehicle_y")];
        } else {
            for (column, (origin, metres)) in
                column.iter().zip([(11.33, 79_400.0), (44.49, 111_200.0)])
            {
                let value: f64 = fields[*column].parse().unwrap();
                fields[*column] = format!("{:.6}", origin + value / metres);
            }
        }
        geo += &(fields.join(";") + "\n");
    }
    let said = complaint(geo.as_bytes());
    assert!(
        said.starts_with(": positions such as (11.33") && said.contains("--fcd-output.geo"),
        "{said}"
    );
    assert!(said.contains("degrees") && said.contains("expected metres"), "{said}");
    // Who only stands, or is near the origin, may be meant in metres.
    for rows in ["0,a,11.33,44.49\n9,a,11.33,44.49\n0,b,11.34,44.49\n", "0,a,1,2\n100,a,1,3\n"] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(format!("time_s,vehicle,x_m,y_m\n{rows}").as_bytes()).unwrap();
        mobility::read(file.path()).unwrap();
    }
}

#[test]
fn persons_comments_and_steps_without_vehicles_are_passed_over() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let text = "<fcd-export><!-- \n --><timestep time=\"0\"><person id=\"p\" x=\"0\" \
                y=\"0\"/></timestep><timestep time=\"1\"/><timestep time=\"2\"><vehicle \
                id=\"a&amp;b\" x=\"1\" y=\"2\"/></timestep></fcd-export>";
    file.write_all(text.as_bytes()).unwrap();
    let movement = mobility::read(file.path()).unwrap();
    assert_eq!(movement.vehicles.len(), 1);
    assert_eq!(movement.vehicles[0].name, "a&b");
    assert_eq!(movement.vehicles[0].position_at(at(2)), Some(Point::new(1.0, 2.0)));
}
