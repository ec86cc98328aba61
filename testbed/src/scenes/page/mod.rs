//! `testbed page`: the page of living daemons, of a recording and of a simulated town in
//! headless Chromium, on a desk and on a phone, by day and by night. What must be on it is looked
//! for; the pictures are for people.

#[expect(clippy::indexing_slicing, reason = "in JSON what is not there reads as null")]
mod browser;
mod town;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use self::browser::Browser;
use crate::daemons::programs::Programs;
use crate::probe::PingStream;
use crate::probe::http::{Connection, PORT, enable};
use crate::screen::Screen;
use crate::topology::world::{Testbed, TestbedNode};
use crate::wait::wait_until;

/// What is done.
#[derive(Args, Debug)]
pub struct PageOptions {
    /// Directory for the pictures
    #[arg(long, default_value = "target/page")]
    into: PathBuf,
    /// The browser
    #[arg(long, default_value = "chromium")]
    browser: String,
}

const PATIENCE: Duration = Duration::from_secs(30);

/// Sizes in CSS pixels: a desk and a phone.
const DESK: (u32, u32) = (1360, 900);
const PHONE: (u32, u32) = (390, 844);

/// Runs it inside the arena. Fails when something is not on the page.
pub fn run(options: &PageOptions) -> Result<()> {
    Programs::find()?.require_daemons()?;
    fs::create_dir_all(&options.into)?;
    let screen = Screen::new();
    screen.title("The page in a browser");
    let mut bed = Testbed::new(1)?;
    let server = bed.add_host("server")?;
    let rsus = [bed.add_rsu("rsu1")?, bed.add_rsu("rsu2")?];
    let [obu1, obu2, obu3] = [bed.add_obu("obu1")?, bed.add_obu("obu2")?, bed.add_obu("obu3")?];
    for rsu in &rsus {
        bed.connect(&obu1, rsu)?;
        bed.connect(&obu2, rsu)?;
    }
    bed.connect(&obu1, &obu2)?;
    bed.connect(&obu1, &obu3)?;
    enable(&bed);
    let recordings = tempfile::tempdir()?;
    let record = ["--record".to_owned(), recordings.path().display().to_string()];
    obu1.extra_args.borrow_mut().extend(record);
    // All but one say where they are.
    for (node, at) in [
        (&rsus[0], "48.1372,11.5755"),
        (&rsus[1], "48.1372,11.5795"),
        (&obu1, "48.1375,11.5772"),
        (&obu2, "48.1368,11.5778"),
    ] {
        let args = ["--position", at, "--share-position"].map(str::to_owned);
        node.extra_args.borrow_mut().extend(args);
    }
    let seen = (|| {
        bed.start_all()?;
        let traffic = PingStream::start(&obu3.host.ns, server.v4, Duration::from_millis(20))?;
        let hand_over = |old: &TestbedNode, is_silent: bool| {
            if is_silent {
                old.kill()?
            } else {
                old.stop()?
            }
            let gone = Value::from(old.radio.to_string());
            of_status(&obu1, |status| {
                status["attached"]["rsu"].is_string() && status["attached"]["rsu"] != gone
            })?;
            old.start()?;
            // Known again, and ready to take over.
            std::thread::sleep(Duration::from_secs(3));
            Ok::<_, anyhow::Error>(())
        };
        for is_silent in [true, false, true] {
            let status = of_status(&obu1, |status| status["attached"]["is_acknowledged"] == true)?;
            let rsu = rsus.iter().find(|rsu| status["attached"]["rsu"] == rsu.radio.to_string());
            hand_over(rsu.context("attached to no RSU of ours")?, is_silent)?;
        }
        of_status(&obu1, |status| status["attached"]["is_acknowledged"] == true)?;
        look(options, &screen, &obu1, &obu2, &obu3, &rsus)?;
        traffic.stop()?;
        obu1.stop()?;
        play(options, &screen, &obu1, recordings.path())?;
        town::play(options, &screen, obu1.ns())
    })();
    seen.map_err(|error: anyhow::Error| anyhow::anyhow!("{error:#}\n{}", bed.log_tails()))
}

fn of_status(node: &TestbedNode, accept: impl Fn(&Value) -> bool) -> Result<Value> {
    wait_until(&format!("status of {}", node.name()), PATIENCE, || {
        let (_, body) = Connection::open(node.ns())?.get("/status")?;
        let status = serde_json::from_str(&body)?;
        Ok(accept(&status).then_some(status))
    })
}

fn look(
    options: &PageOptions,
    screen: &Screen,
    obu: &TestbedNode,
    other: &TestbedNode,
    child: &TestbedNode,
    rsus: &[Rc<TestbedNode>; 2],
) -> Result<()> {
    let short = |node: &TestbedNode| node.radio.to_string().split_off(12);
    let [first, second] = rsus.each_ref().map(|rsu| short(rsu));
    let url = format!("http://127.0.0.1:{PORT}/");
    let picture = |browser: &mut Browser, name: &str| {
        let path = options.into.join(format!("{name}.png"));
        fs::write(&path, browser.picture()?)?;
        screen.good(name, &path.display().to_string());
        Ok::<_, anyhow::Error>(())
    };
    // A vehicle: what there is to choose from and why, and what happened.
    let mut browser = Browser::start(obu.ns(), &options.browser)?;
    browser.window(DESK, false)?;
    browser.open(&url)?;
    let wanted = [
        "● live",
        "✔ well",
        "in use",
        "usable",
        "this OBU",
        "sends through us",
        "it sends through us: frames would come back",
        "hand-overs:",
        "the upstream fell silent",
        "said goodbye",
        "node relayed",
        "upstream changed",
        "Only who says where it is stands here",
        &short(other),
        &short(child),
        &first,
        &second,
    ];
    let text = browser.shows(&wanted)?;
    ensure!(!text.contains("undefined") && !text.contains("NaN"), "{text}");
    let spots = browser.value("document.querySelectorAll('#map .node').length")?;
    ensure!(spots == 4, "{spots} nodes on the map, and four say where they are");
    // The counters get a line of some length.
    std::thread::sleep(Duration::from_secs(8));
    picture(&mut browser, "obu-desk")?;
    browser.click(&format!("[data-key='spot-{}']", other.radio))?;
    browser.shows(&["its way + ", "hears us, shown"])?;
    browser.click("[data-key='zoom-in']")?;
    let zoom = browser.value("document.querySelector('svg.map').classList.contains('zoomed')")?;
    ensure!(zoom == true, "the map is not larger: {zoom}");
    browser.click("[data-key='zoom-all']")?;
    browser.click(&format!("[data-key='dot-{}']", other.radio))?;
    browser.shows(&["its way + ", "our link", "hears us, shown"])?;
    browser.click("#changes button")?;
    browser.shows(&["There were, right after the decision", "old one silent for"])?;
    browser.click(&format!("#candidates button[title='{}']", other.radio))?;
    browser.shows(&["its way + "])?;
    let kept = browser.value("document.activeElement.dataset.key")?;
    std::thread::sleep(Duration::from_secs(3));
    let still = browser.value("document.activeElement.dataset.key")?;
    ensure!(kept.is_string() && kept == still, "the focus went from {kept} to {still}");
    browser.window(DESK, true)?;
    picture(&mut browser, "obu-desk-dark")?;
    browser.window(PHONE, false)?;
    let wide = browser.value("document.documentElement.scrollWidth")?;
    ensure!(wide == PHONE.0, "a phone of {} pixels would scroll sideways: {wide}", PHONE.0);
    picture(&mut browser, "obu-phone")?;
    by_finger(&mut browser, other, &rsus[0])?;
    browser.window(PHONE, true)?;
    picture(&mut browser, "obu-phone-dark")?;
    let complaints = browser.complaints();
    ensure!(complaints.is_empty(), "the browser complains: {complaints:#?}");
    // An RSU, and the vehicles behind it.
    let mut beside = Browser::start(rsus[0].ns(), &options.browser)?;
    beside.window(DESK, false)?;
    beside.open(&format!("{url}#{}", child.radio))?;
    beside.shows(&["● live", "this RSU", "way down", "vehicles attached", &short(child)])?;
    std::thread::sleep(Duration::from_secs(4));
    picture(&mut beside, "rsu-desk")?;
    beside.window(PHONE, false)?;
    picture(&mut beside, "rsu-phone")?;
    // What goes wrong is seen without a click, and so is a daemon that has ended.
    for node in [child, other, &rsus[0], &rsus[1]] {
        node.kill()?;
    }
    browser.window(DESK, false)?;
    browser.shows(&["✖ ill", "Nothing gets through", "What to do"])?;
    picture(&mut browser, "obu-ill")?;
    beside.shows(&["no word for", "what is shown is old"])?;
    Ok(())
}

/// On a phone a finger moves the map once it is larger, and else the page. One that hardly moves
/// chooses what it is on.
fn by_finger(browser: &mut Browser, other: &TestbedNode, rsu: &TestbedNode) -> Result<()> {
    const TAPS: usize = 12;
    const TREMBLES: f64 = 5.0;
    const SHIFT: (f64, f64) = (60.0, -45.0);
    let spot = format!("[data-key='spot-{}']", other.radio);
    let place = |browser: &mut Browser| -> Result<[f64; 3]> {
        let place = format!(
            "(() => {{ const b = document.querySelector({spot:?}).getBoundingClientRect(); const \
             m = document.querySelector('svg.map').getBoundingClientRect(); return [b.x - m.x, \
             b.y - m.y, scrollY]; }})()"
        );
        Ok(serde_json::from_value(browser.value(&place)?)?)
    };
    let before = place(browser)?;
    browser.swipe("svg.map", (0.0, -120.0))?;
    wait_until("the page under a finger", PATIENCE, || {
        let [x, y, scrolled] = place(browser)?;
        let moved = [x - before[0], y - before[1]];
        ensure!(moved.iter().all(|by| by.abs() < 2.0), "the whole map was moved by {moved:?}");
        Ok((scrolled > before[2]).then_some(()))
    })?;
    browser.click("[data-key='zoom-in']")?;
    wait_until("a larger map", PATIENCE, || {
        let zoomed = browser.value("document.querySelector('svg.map.zoomed') !== null")?;
        Ok((zoomed == true).then_some(()))
    })?;
    browser.value("document.querySelector('svg.map').scrollIntoView({block: 'center'})")?;
    let before = place(browser)?;
    let scrolled = browser.swipe("svg.map", SHIFT)?;
    let after = place(browser)?;
    let moved = [after[0] - before[0] - SHIFT.0, after[1] - before[1] - SHIFT.1];
    ensure!(
        moved.iter().chain([&scrolled]).all(|off| off.abs() < 2.0),
        "a finger moved the map from {before:?} to {after:?}, and should by {SHIFT:?}; it moved \
         the page by {scrolled}"
    );
    // On the larger map one of them may be out of sight.
    let chooses = |browser: &mut Browser, place: &str, node: &TestbedNode| {
        browser.tap(&format!("[data-key='{place}-{}']", node.radio), TREMBLES)?;
        wait_until(&format!("a tap on the {place} of {}", node.name()), PATIENCE, || {
            let chosen = browser.value("location.hash")?;
            Ok((chosen == format!("#{}", node.radio)).then_some(()))
        })
    };
    chooses(browser, "dot", rsu)?;
    chooses(browser, "spot", other)?;
    browser.click("[data-key='zoom-all']")?;
    let spots = [("spot", rsu), ("spot", other), ("dot", rsu), ("dot", other)];
    for (place, node) in spots.into_iter().cycle().take(TAPS) {
        chooses(browser, place, node)?;
    }
    Ok(())
}

/// Has a program write its page into a file of this name. Where it can be opened.
fn written(options: &PageOptions, name: &str, program: &mut Command) -> Result<String> {
    let page = std::path::absolute(options.into.join(name))?;
    // What is there of an earlier run is not this one's.
    let _ = fs::remove_file(&page);
    let output = program.arg("-o").arg(&page).output();
    let output =
        output.with_context(|| format!("{program:?}: build it first, as make page does"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(format!("file://{}", page.display()))
}

/// The recording of the same drive, as a page.
fn play(
    options: &PageOptions,
    screen: &Screen,
    obu: &TestbedNode,
    recordings: &Path,
) -> Result<()> {
    let mut v2xtrace = Command::new(Programs::find()?.v2xtrace);
    let page = written(options, "drive.html", v2xtrace.arg("page").arg(recordings))?;
    let mut browser = Browser::start(obu.ns(), &options.browser)?;
    browser.window(DESK, false)?;
    browser.open(&page)?;
    browser.shows(&["recording of", "0.0 s of", "attached to no RSU", "nothing has moved yet"])?;
    browser.click(".timebar input")?;
    browser.shows(&["attached to RSU", "in use", "the upstream fell silent", "node relayed"])?;
    browser.shows(&["Only who says where it is stands here"])?;
    let picture = options.into.join("recording.png");
    fs::write(&picture, browser.picture()?)?;
    browser.value("document.querySelector('.timebar select').value = '100'")?;
    browser.click(".timebar button")?;
    browser.shows(&["✖ ill", "Nothing gets through", "▶ play"])?;
    let complaints = browser.complaints();
    ensure!(complaints.is_empty(), "the browser complains: {complaints:#?}");
    screen.good("recording", &picture.display().to_string());
    Ok(())
}
