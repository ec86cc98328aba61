//! The page of a simulated town, as `v2xsim page` writes it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::browser::Browser;
use super::{DESK, PATIENCE, PHONE, PageOptions, written};
use crate::arena::netns::Netns;
use crate::daemons::programs::Programs;
use crate::screen::Screen;
use crate::wait::wait_until;

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/scenarios/city.toml");

/// Those with a way.
const VEHICLES: &str = "#map .node[aria-label^='obu '][aria-label*=' via ']";
const RSUS: &str = "#map .node[aria-label^='rsu ']";

/// Clicks on the first of these that is hit where it is, for others stand in front of some. Who it
/// is.
fn click_one(browser: &mut Browser, of: &str) -> Result<String> {
    let find = r#"(() => {
      for (const spot of document.querySelectorAll(OF)) {
        spot.scrollIntoView({ block: "center" });
        const box = spot.getBoundingClientRect();
        const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        if (spot.contains(hit)) return spot.dataset.key;
      }
      return null;
    })()"#;
    let found = browser.value(&find.replace("OF", &format!("{of:?}")))?;
    let found = found.as_str().with_context(|| format!("none of {of} can be clicked"))?;
    browser.click(&format!("[data-key='{found}']"))?;
    Ok(found.replace("spot-", ""))
}

/// Moves its time, chooses a vehicle and then an RSU, and has it played to its end.
pub(super) fn play(options: &PageOptions, screen: &Screen, ns: &Netns) -> Result<()> {
    let mut v2xsim = Command::new(Programs::find()?.v2xsim);
    v2xsim.args(["page", SCENARIO, "--set", "duration=30s"]);
    let page = written(options, "town.html", &mut v2xsim)?;
    let mut browser = Browser::start(ns, &options.browser)?;
    browser.window(DESK, false)?;
    browser.open(&page)?;
    browser.shows(&[
        "Town city, seed 1",
        "a simulation: v2xsim",
        "tap a vehicle",
        "0.0 s of 30.",
    ])?;
    browser.click(".timebar input")?;
    browser.shows(&["15.0 s of 30.", " have a way"])?;
    let vehicle = click_one(&mut browser, VEHICLES)?;
    let wanted =
        ["attached to RSU", "through whom an RSU could be reached", "In use: frames to RSU"];
    let text = browser.shows(&wanted)?;
    ensure!(!text.contains("undefined") && !text.contains("NaN"), "{text}");
    let chosen = browser.value("location.hash")?;
    ensure!(chosen == format!("#{vehicle}"), "{vehicle} was clicked, {chosen} is chosen");
    let picture = options.into.join("town.png");
    fs::write(&picture, browser.picture()?)?;
    browser.window(PHONE, true)?;
    let wide = browser.value("document.documentElement.scrollWidth")?;
    ensure!(wide == PHONE.0, "a phone of {} pixels would scroll sideways: {wide}", PHONE.0);
    browser.window(DESK, false)?;
    click_one(&mut browser, RSUS)?;
    browser.shows(&["vehicles attached", "Vehicles find it by its heartbeats"])?;
    to_its_end(&mut browser)?;
    let complaints = browser.complaints();
    ensure!(complaints.is_empty(), "the browser complains: {complaints:#?}");
    screen.good("town", &picture.display().to_string());
    Ok(())
}

/// Presses "play" and waits until it has stopped at the last look.
fn to_its_end(browser: &mut Browser) -> Result<()> {
    const IS_OVER: &str = "(() => { const bar = document.querySelector('.timebar input'); return \
                           bar.value === bar.max; })()";
    browser.value("document.querySelector('.timebar select').value = '100'")?;
    browser.click(".timebar button")?;
    wait_until("the end of the town", PATIENCE, || {
        Ok((browser.value(IS_OVER)? == true).then_some(()))
    })?;
    browser.shows(&["▶ play"]).map(|_| ())
}
